//! Real parity: what is lost comes back bit by bit, before and after partial writes, and the geometry that places chunks
//! is a geometry.

mod code;
mod geometry;
mod known;
mod row;
mod volume;
