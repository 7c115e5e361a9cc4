//! Every pair of CPUs as neighbours in some ring: a repetition probes a whole ring, so that few of them see all pairs.
//!
//! The complete graph of an even number of points falls apart into paths that visit each point once, that of an odd
//! number into rings: É. Lucas, Récréations mathématiques 2, 1883, from W. Walecki; see B. Alspach, "The wonderful
//! Walecki construction", Bulletin of the ICA 52, 2008.

/// Rings over `points` in which each two are neighbours at least once; of two points one ring, of fewer none. Where the
/// number is even, the neighbours that close a path to a ring meet twice.
pub(super) fn covering<T: Copy>(points: &[T]) -> Vec<Vec<T>> {
    // An odd number's last point stands outside, and joins the two ends of each path.
    let (circle, outside) = match points {
        [] | [_] => return Vec::new(),
        points if points.len() % 2 == 1 => (&points[..points.len() - 1], points.last()),
        points => (points, None),
    };
    let n = circle.len();
    // One on, one back, two on, two back, …: as far apart as the circle is wide, and each distance once.
    let swing = |step: usize| if step % 2 == 1 { step.div_ceil(2) } else { n - step / 2 };
    let zigzag = |start: usize| (0..n).map(move |step| (start + swing(step)) % n);
    (0..n / 2).map(|start| zigzag(start).map(|at| circle[at]).chain(outside.copied()).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::covering;
    use std::collections::BTreeSet;

    #[test]
    fn each_two_points_are_neighbours_in_some_ring() {
        for n in 2..40usize {
            let points: Vec<usize> = (100..100 + n).collect();
            let rings = covering(&points);
            assert_eq!(rings.len(), n / 2, "{n}");
            let mut met = BTreeSet::new();
            for ring in &rings {
                assert_eq!(ring.iter().collect::<BTreeSet<_>>().len(), n, "{ring:?} visits each point once");
                for (at, a) in ring.iter().enumerate() {
                    let b = &ring[(at + 1) % n];
                    met.insert((a.min(b), a.max(b)));
                }
            }
            assert_eq!(met.len(), n * (n - 1) / 2, "{n}");
        }
        assert!(covering(&[7]).is_empty() && covering::<u32>(&[]).is_empty());
    }
}
