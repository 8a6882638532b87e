//! The five transactions, each as statements in its file and as one call of a procedure in `procedures.rs`.

mod customers;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod procedures;
mod stock_level;

use assay_sql::{DbError, Driver};

pub(super) use self::procedures::call;
use super::input::Input;
use crate::{
    talk::{Outcome, Talk},
    tpcc::Tpcc,
    workload::Done,
};

/// Runs one transaction once, as statements; of an order with its number.
pub(super) async fn run<D: Driver>(talk: &mut Talk<'_, D>, input: &Input) -> Done<Tpcc> {
    if let Input::NewOrder { warehouse, district, customer, lines } = input {
        let (outcome, order) = new_order::run(talk, *warehouse, *district, *customer, lines).await?;
        return Ok((outcome, Some(order)));
    }
    run_other(talk, input).await.map(|outcome| (outcome, None))
}

async fn run_other<D: Driver>(talk: &mut Talk<'_, D>, input: &Input) -> Result<Outcome, DbError> {
    match input {
        Input::NewOrder { .. } => unreachable!("orders are run above"),
        Input::Payment { warehouse, district, customer_warehouse, customer_district, customer, amount } => {
            let payer =
                payment::Payer { warehouse: *customer_warehouse, district: *customer_district, customer: *customer };
            payment::run(talk, *warehouse, *district, payer, *amount).await
        }
        Input::OrderStatus { warehouse, district, customer } => {
            order_status::run(talk, *warehouse, *district, *customer).await
        }
        Input::Delivery { warehouse, carrier } => delivery::run(talk, *warehouse, *carrier).await,
        Input::StockLevel { warehouse, district, threshold } => {
            stock_level::run(talk, *warehouse, *district, *threshold).await
        }
    }
}
