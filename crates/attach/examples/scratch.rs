use attach::touch::{TouchOptions, watch};
use std::time::Duration;
fn main() {
    if std::env::args().nth(1).as_deref() == Some("__symbols") { attach::symbols::serve(); return; }
    let name = std::env::args().nth(1).unwrap();
    let ms: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let t = attach::find(&host::Root::system(), &attach::Wanted::Segment(name), &[]).unwrap().targets;
    let parser = attach::symbols::SymbolParser::new(c"/proc/self/exe".into(), vec![c"x".into(), c"__symbols".into()], vec![]);
    let cpu0 = std::time::Instant::now();
    let seen = watch(&t, &TouchOptions { time: Duration::from_millis(ms), penalty: &|_, _| Some(record::Interval{median:20.,low:10.,high:30.}), parser: Some(&parser), fields: None, stop: &|| false });
    for l in &seen.lines {
        println!("{:#x} {:?} {:.3e}/s rec {:?}", l.offset, l.verdict, l.accesses_per_second.unwrap_or(-1.0), l.recoverable);
        for w in &l.words { println!("   +{:#x} {}B w{:?} r{:?} proved {}", w.offset, w.bytes, w.writers, w.readers, w.proved);
            for i in &w.instructions { println!("       {} {:?} {:?} {:?} hits {} samples {}", i.pid, i.text, i.symbol, i.source.as_ref().map(|s| s.1), i.hits, i.samples); } }
    }
    println!("spin {:?}\nnotes {:?}\ncost {:?}", seen.spinners, seen.notes, seen.cost);
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).unwrap();
    println!("took {:?}, own cpu {:?} + {:?}", cpu0.elapsed(), usage.user_time(), usage.system_time());
}
