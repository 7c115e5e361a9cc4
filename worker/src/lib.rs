//! What one pinned process does: attach, pin, compile its program, warm up, run, record.

pub mod compile;
