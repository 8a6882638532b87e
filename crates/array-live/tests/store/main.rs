//! The bytes of a modelled array are those that were acknowledged, whatever happens that its policy bears; and exactly those
//! are lost that must be when more happens.

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
mod cut_short;
mod damaged;
mod enlarging;
mod foreign_files;
mod growth;
mod lost;
mod moving;
mod proof;
mod room;
