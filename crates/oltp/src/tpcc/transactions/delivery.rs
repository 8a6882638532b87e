use assay_sql::{DbError, Driver};

use crate::{
    talk::{Outcome, Talk, unreadable},
    tpcc::{
        rows::DISTRICTS,
        statements::Statement::{
            Begin, Commit, DeliveryAmount, DeliveryCustomerOf, DeliveryCustomerUpdate, DeliveryDelete,
            DeliveryLinesUpdate, DeliveryOldest, DeliveryOrderUpdate,
        },
    },
};

/// Statements of the second batch for each district.
const EACH: usize = 5;

/// Clause 2.7: the oldest new order of every district, in one transaction and three batches. A district that has none is passed over.
pub(super) async fn run<D: Driver>(talk: &mut Talk<'_, D>, warehouse: u32, carrier: u32) -> Result<Outcome, DbError> {
    talk.add(Begin);
    for district in 1..=DISTRICTS {
        talk.add(DeliveryOldest).int(warehouse).int(district);
    }
    talk.send().await?;
    let mut orders = [None; DISTRICTS as usize];
    for (index, order) in orders.iter_mut().enumerate() {
        *order = talk.results.row(1 + index, 0).and_then(|row| row.int(0));
    }
    let found = || (1_u32..).zip(orders).filter_map(|(district, order)| Some((district, order?)));
    for (district, order) in found() {
        talk.add(DeliveryDelete).int(warehouse).int(district).int(order);
        talk.add(DeliveryCustomerOf).int(warehouse).int(district).int(order);
        talk.add(DeliveryOrderUpdate).int(carrier).int(warehouse).int(district).int(order);
        talk.add(DeliveryLinesUpdate).int(warehouse).int(district).int(order);
        talk.add(DeliveryAmount).int(warehouse).int(district).int(order);
    }
    if !talk.batch.is_empty() {
        talk.send().await?;
    }
    for (place, (district, _)) in found().enumerate() {
        let Talk { batch, results, .. } = talk;
        let customer = results.row(EACH * place + 1, 0).and_then(|row| row.int(0)).ok_or_else(unreadable)?;
        let amount = results.row(EACH * place + 4, 0).and_then(|row| row.cents(0)).ok_or_else(unreadable)?;
        batch.add(DeliveryCustomerUpdate).cents(amount).int(warehouse).int(district).int(customer);
    }
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
