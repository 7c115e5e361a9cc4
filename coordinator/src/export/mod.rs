//! A [saved run](crate::saved) for other programs: [`points`] makes it points in time, which [`line_protocol`] and
//! [`tidy`] write and [`push`] sends to a server; [`hlog`] passes on its histograms.

pub(crate) mod hlog;
pub(crate) mod line_protocol;
pub(crate) mod points;
pub(crate) mod push;
mod tag;
pub(crate) mod tidy;
mod timeline;
