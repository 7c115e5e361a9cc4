//! Workers that wait for each other in a circle: each holds a lock that the one before it waits for, so none ever goes
//! on. Looked for when a repetition is late, since it lasts; in a window nobody looks.

use crate::launch::{Child, name_among};
use plan::{OpKind, Program};
use shm_layout::Segment;

/// A worker in a circle, and the lock that it waits for: the next one in the circle holds it, as this one holds what
/// the one before waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Link {
    worker: u32,
    waits_for: u32,
}

/// A circle of workers; the last waits for what the first holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Circle(Vec<Link>);

/// A circle among the workers that live, as their slots tell at this moment. One that is seen twice stands: waits that
/// end at a time are left out, so nothing in it can go on.
pub(crate) fn find(program: &Program, segment: &Segment, children: &mut [Child]) -> Option<Circle> {
    children.iter_mut().for_each(|child| _ = child.poll_status());
    let living = children.iter().filter(|child| child.status.is_none()).flat_map(Child::indices);
    let waiting = living.filter_map(|worker| {
        let waits_for = segment.slot(worker).waits_for()?;
        (!leaves(program, worker, waits_for)).then_some(Link { worker, waits_for })
    });
    among(&waiting.collect::<Vec<_>>(), |worker, lock| segment.holds(worker).contains(&lock))
}

/// Whether a wait of this worker for this lock may end at a time.
fn leaves(program: &Program, worker: u32, lock: u32) -> bool {
    let timed = |kind: &OpKind| matches!(kind, OpKind::Lock { lock: l, timeout: Some(_), .. } if *l == lock);
    let ops = program.workers.iter().filter(|w| w.index.0 == worker).flat_map(|w| &w.ops);
    ops.into_iter().any(|op| timed(&op.kind))
}

/// A circle among those who wait: from each in turn along whoever holds what it waits for.
fn among(waiting: &[Link], holds: impl Fn(u32, u32) -> bool) -> Option<Circle> {
    fn follow(path: &mut Vec<Link>, waiting: &[Link], holds: &impl Fn(u32, u32) -> bool) -> Option<Circle> {
        let last = *path.last()?;
        let holders = waiting.iter().filter(|link| link.worker != last.worker && holds(link.worker, last.waits_for));
        for next in holders {
            if *next == path[0] {
                return Some(Circle(path.clone()));
            }
            if !path.contains(next) {
                path.push(*next);
                if let Some(found) = follow(path, waiting, holds) {
                    return Some(found);
                }
                path.pop();
            }
        }
        None
    }
    waiting.iter().find_map(|first| follow(&mut vec![*first], waiting, &holds))
}

impl Circle {
    /// Who holds what and waits for what, and what to do.
    pub(crate) fn words(&self, program: &Program, children: &[Child]) -> String {
        let lock = |index: u32| program.locks.get(index as usize).map_or("?", |lock| lock.name.as_str());
        let befores = self.0.iter().cycle().skip(self.0.len().saturating_sub(1));
        let link = |(link, before): (&Link, &Link)| {
            let (holds, waits_for) = (lock(before.waits_for), lock(link.waits_for));
            format!("{} holds lock `{holds}` and waits for lock `{waits_for}`", name_among(children, link.worker))
        };
        let links: Vec<String> = self.0.iter().zip(befores).map(link).collect();
        format!(
            "{}: they wait for each other in a circle; take the locks in the same order in every role",
            links.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(of: &[(u32, u32)]) -> Vec<Link> {
        of.iter().map(|&(worker, waits_for)| Link { worker, waits_for }).collect()
    }

    /// The workers in the circle that is found where worker `w` holds the locks in `held[w]`.
    fn found(waiting: &[(u32, u32)], held: &[&[u32]]) -> Option<Vec<u32>> {
        let circle = among(&links(waiting), |worker, lock| held[worker as usize].contains(&lock))?;
        Some(circle.0.iter().map(|link| link.worker).collect())
    }

    #[test]
    fn a_circle_is_found_wherever_it_begins_and_nothing_else_is_one() {
        assert_eq!(found(&[(0, 1), (1, 0)], &[&[0], &[1]]), Some(vec![0, 1]));
        assert_eq!(found(&[(0, 1), (1, 2), (2, 0)], &[&[0], &[1], &[2]]), Some(vec![0, 1, 2]));
        assert_eq!(found(&[(0, 0), (1, 1), (2, 0)], &[&[1], &[0], &[]]), Some(vec![0, 1]), "one waits beside it");
        assert_eq!(found(&[(2, 0), (0, 1), (1, 0)], &[&[0], &[1], &[]]), Some(vec![0, 1]), "one waits before it");
        assert_eq!(found(&[(0, 0), (1, 1)], &[&[1], &[], &[0]]), None, "worker 2 holds and goes on");
        assert_eq!(found(&[(0, 0)], &[&[0]]), None, "who waits for what it is giving back");
        assert_eq!(found(&[], &[]), None);
    }

    /// Two readers hold lock 0, and the one of them that waits makes the circle.
    #[test]
    fn every_reader_must_leave_before_a_writer_comes() {
        assert_eq!(found(&[(1, 0), (2, 1)], &[&[0], &[1], &[0]]), Some(vec![1, 2]));
    }
}
