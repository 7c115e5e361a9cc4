// Ten structs for `import` and pahole, and enums, of which pahole 1.24 knows nothing.
use std::sync::atomic::{AtomicU32, AtomicU64};

pub struct Reordered {
    a: u8,
    b: u64,
    c: u16,
    d: u32,
}
#[repr(C)]
pub struct Declared {
    a: u8,
    b: u64,
    c: u16,
}
#[repr(C, align(128))]
pub struct Aligned {
    head: AtomicU64,
    tail: AtomicU64,
}
#[repr(C, packed)]
pub struct Packed {
    a: u8,
    b: u64,
    c: u16,
}
pub struct Tuple(u8, String, u32);
pub struct Generic<T> {
    value: T,
    all: Vec<T>,
}
pub struct Arrays {
    a: [u8; 100],
    b: [[u16; 3]; 4],
    c: [AtomicU32; 16],
}
pub struct References {
    text: &'static str,
    slice: &'static [u64],
    call: fn(u8) -> u64,
    boxed: Box<Declared>,
    raw: *const u8,
}
pub struct Nested {
    a: Declared,
    b: Aligned,
    c: (u8, u32),
}
pub struct Maybe {
    number: Option<u32>,
    boxed: Option<Box<u8>>,
    text: Result<String, u8>,
}
pub enum Shape {
    Circle(f64),
    Rectangle { width: u32, height: u64 },
    Nothing,
}

fn main() {
    let zero = || AtomicU64::new(0);
    let declared = || Declared { a: 1, b: 2, c: 3 };
    let aligned = || Aligned { head: zero(), tail: zero() };
    std::hint::black_box((
        Reordered { a: 1, b: 2, c: 3, d: 4 },
        declared(),
        aligned(),
        Packed { a: 1, b: 2, c: 3 },
        Tuple(1, String::new(), 2),
        Generic { value: 1_u8, all: vec![] },
        Arrays { a: [0; 100], b: [[0; 3]; 4], c: [const { AtomicU32::new(0) }; 16] },
        References { text: "", slice: &[], call: |x| u64::from(x), boxed: Box::new(declared()), raw: std::ptr::null() },
        Nested { a: declared(), b: aligned(), c: (1, 2) },
        Maybe { number: Some(1), boxed: None, text: Ok(String::new()) },
    ));
    std::hint::black_box((Generic { value: 1_u64, all: vec![] }, Some(Box::new(1_u8))));
    std::hint::black_box([Shape::Circle(1.0), Shape::Rectangle { width: 1, height: 2 }, Shape::Nothing]);
    let p = Packed { a: 1, b: 2, c: 3 };
    std::hint::black_box((p.a, { p.b }, { p.c }));
}
