//! Writes the sound inputs of each fuzz target into `FOLDER/TARGET`, for it to begin with.

use hostile::doors;
use hostile::sound::{BTF, EXERCISES, MACHINES, PROGRAMS, RUN, SCENARIOS, Sound, TOPOLOGY};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "fuzz/corpus".into());
    let segment = [Sound { name: "segment".into(), bytes: doors::sound_segment(), read: Vec::new() }];
    let structs: Vec<Sound> = PROGRAMS.iter().chain(&*BTF).cloned().collect();
    for (target, sound) in [
        ("scenario", &SCENARIOS[..]),
        ("machine", &MACHINES),
        ("exercise", &EXERCISES),
        ("run", &RUN),
        ("topology", &TOPOLOGY),
        ("structs", &structs),
        ("symbols", &PROGRAMS),
        ("segment", &segment),
    ] {
        let of = Path::new(&folder).join(target);
        std::fs::create_dir_all(&of)?;
        for (number, sound) in sound.iter().enumerate() {
            std::fs::write(of.join(format!("sound-{number}")), &sound.bytes)?;
        }
    }
    Ok(())
}
