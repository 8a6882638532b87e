//! Proof that storage keeps what it acknowledged.

mod fault;
mod plan;

pub use fault::{Fault, FaultCounts};
pub use plan::*;
