use assay_sql::{DbError, Driver};

use super::customers::middle_customer;
use crate::{
    talk::{Outcome, Talk},
    tpcc::{
        input::Customer,
        statements::Statement::{
            Begin, Commit, OrderStatusByName, OrderStatusCustomer, OrderStatusLastOrder, OrderStatusLines,
        },
    },
};

/// Clause 2.6: a customer's last order. Two batches, one more for a customer by name.
pub(super) async fn run<D: Driver>(
    talk: &mut Talk<'_, D>,
    warehouse: u32,
    district: u32,
    customer: Customer,
) -> Result<Outcome, DbError> {
    talk.add(Begin);
    let id = match customer {
        Customer::Id(id) => id,
        Customer::LastName(_) => {
            talk.add(OrderStatusByName).int(warehouse).int(district).written(|out| customer.write_name(out));
            talk.send().await?;
            middle_customer(talk, 1)?
        }
    };
    talk.add(OrderStatusCustomer).int(warehouse).int(district).int(id);
    let last_order = talk.batch.len();
    talk.add(OrderStatusLastOrder).int(warehouse).int(district).int(id);
    talk.send().await?;
    talk.row(last_order - 1)?;
    let order = talk.int(last_order, 0)?;
    talk.add(OrderStatusLines).int(warehouse).int(district).int(order);
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
