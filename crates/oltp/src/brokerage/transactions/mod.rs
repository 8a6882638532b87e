//! The transactions, as statements and as calls of procedures.

mod begin;
mod call;
mod feed;
mod maintenance;
mod order;
mod plain;
mod positions;
mod result;
mod securities;
mod seek;

pub(super) use self::{call::call, plain::run};
