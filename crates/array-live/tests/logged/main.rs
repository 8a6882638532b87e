//! The bytes of an array with flash in its hosts are those that were acknowledged, whatever happens that its parity bears; and
//! exactly those are lost that must be when more happens.

#[path = "../damage/mod.rs"]
mod damage;
#[path = "../extent/mod.rs"]
mod extent;
#[path = "../foreign/mod.rs"]
mod foreign;
#[path = "../../../array-model/tests/plans/mod.rs"]
mod plans;
#[path = "../proving/mod.rs"]
mod proving;

mod any_order;
mod damaged;
mod parity;
mod proof;
mod reduction;
