//! Room for the segment.

use crate::{Finding, Patient, Spoils};
use host::SharedMemory;

/// Free bytes under which a machine is short of room: many times what the lab's own scenarios take, and a quarter of
/// what container runtimes give by default.
const LITTLE_BYTES: u64 = 16 << 20;

/// `/dev/shm`, where every repetition reserves its segment.
pub(super) fn dev_shm(patient: &Patient<'_>) -> Finding {
    judge(host::shared_memory(patient.root).as_ref())
}

fn judge(mount: Option<&SharedMemory>) -> Finding {
    const NAME: &str = "dev_shm";
    const WHY: &str = "each repetition reserves its segment there before it maps it; what does not fit is refused";
    let Some(mount) = mount else {
        return Finding::missing(NAME, "no folder /dev/shm", WHY)
            .cured_by("`sudo mkdir -p /dev/shm && sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm`")
            .spoiling(Spoils::EveryRun);
    };
    let room = format!("{} free of {}", size(mount.free_bytes), size(mount.bytes));
    if mount.read_only() {
        return Finding::missing(NAME, format!("mounted read-only, {room}"), WHY)
            .cured_by("`sudo mount -o remount,rw /dev/shm`")
            .spoiling(Spoils::EveryRun);
    }
    let restrictions: Vec<&str> =
        mount.options.iter().map(String::as_str).filter(|option| matches!(*option, "noexec" | "nosuid")).collect();
    // Segments hold no code: neither restriction matters, and whoever looks for one finds it here.
    let options = if restrictions.is_empty() { String::new() } else { format!(" ({})", restrictions.join(", ")) };
    let seen = format!("{room}{options}");
    if mount.free_bytes < LITTLE_BYTES {
        return Finding::warn(NAME, seen, WHY)
            .cured_by(
                "`coordinator clean` removes what dead runs left; else `sudo mount -o remount,size=1G /dev/shm`, in a \
                 container `docker run --shm-size=1g`",
            )
            .spoiling(Spoils::SegmentsOver(mount.free_bytes));
    }
    Finding::ok(NAME, seen, WHY).spoiling(Spoils::SegmentsOver(mount.free_bytes))
}

fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(bits, _)| bytes >> bits > 0) {
        Some((bits, unit)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << bits) as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::fixture::assert_well_formed;
    use crate::{Finding, Needs, Spoils};
    use host::SharedMemory;
    use record::CheckState::{Missing, Ok, Warn};

    fn of(free_bytes: u64, options: &[&str]) -> Finding {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let found = judge(Some(&SharedMemory { bytes: 64 << 20, free_bytes, options }));
        assert_well_formed(&found);
        found
    }

    #[test]
    fn room_enough_is_well_whatever_cannot_be_executed_there() {
        let found = of(63 << 20, &["rw", "nosuid", "nodev", "noexec"]);
        assert_eq!((found.check.state, found.check.seen.as_str()), (Ok, "63.0 MiB free of 64.0 MiB (nosuid, noexec)"));
    }

    #[test]
    fn a_segment_that_does_not_fit_is_spoilt_by_much_room_too() {
        let found = of(17 << 20, &["rw"]);
        let needing = |segment_bytes| found.spoils(&Needs { segment_bytes, ..Needs::default() });
        assert_eq!((found.check.state, needing(17 << 20), needing((17 << 20) + 1)), (Ok, false, true));
    }

    #[test]
    fn little_room_spoils_the_segments_that_do_not_fit() {
        let found = of(5 << 19, &["rw"]);
        assert_eq!((found.check.state, found.check.seen.as_str()), (Warn, "2.5 MiB free of 64.0 MiB"));
        assert_eq!(found.spoils, Spoils::SegmentsOver(5 << 19));
        assert_eq!(of(100, &["rw"]).check.seen, "100 bytes free of 64.0 MiB");
    }

    #[test]
    fn none_and_read_only_spoil_every_run() {
        for found in [judge(None), of(63 << 20, &["ro"])] {
            assert_eq!((found.check.state, &found.spoils), (Missing, &Spoils::EveryRun), "{found:?}");
            assert!(found.check.cure.is_some());
        }
    }
}
