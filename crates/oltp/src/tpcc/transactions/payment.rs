use std::io::Write;

use assay_sql::{DbError, Driver};

use super::customers::middle_customer;
use crate::{
    talk::{Outcome, Talk, unreadable},
    tpcc::{
        input::Customer,
        statements::Statement::{
            Begin, Commit, PaymentByName, PaymentCustomer, PaymentCustomerData, PaymentCustomerUpdate,
            PaymentCustomerUpdateBad, PaymentDistrict, PaymentDistrictUpdate, PaymentHistory, PaymentWarehouse,
            PaymentWarehouseUpdate,
        },
    },
};

/// Whose payment it is: a customer, perhaps of another warehouse.
pub(super) struct Payer {
    pub(super) warehouse: u32,
    pub(super) district: u32,
    pub(super) customer: Customer,
}

const CREDIT: usize = 10;
/// Most of `c_data` that is kept (clause 2.5.2.2).
const DATA_MAX: usize = 500;

/// Clause 2.5: two batches, one more for a customer by name and one for bad credit. The rows that everybody wants, warehouse
/// and district, are changed last, so that their locks are held for the commit alone.
pub(super) async fn run<D: Driver>(
    talk: &mut Talk<'_, D>,
    warehouse: u32,
    district: u32,
    payer: Payer,
    amount: u32,
) -> Result<Outcome, DbError> {
    talk.add(Begin);
    talk.add(PaymentWarehouse).int(warehouse);
    talk.add(PaymentDistrict).int(warehouse).int(district);
    match payer.customer {
        Customer::LastName(_) => {
            let by_name = talk.add(PaymentByName).int(payer.warehouse).int(payer.district);
            by_name.written(|out| payer.customer.write_name(out));
        }
        Customer::Id(id) => {
            talk.add(PaymentCustomer).int(payer.warehouse).int(payer.district).int(id);
        }
    }
    talk.send().await?;
    // History names warehouse and district, at most ten letters each.
    let mut names = [0; 24];
    let mut free = &mut names[..];
    free.write_all(talk.row(1)?.text(0).ok_or_else(unreadable)?).map_err(|_| unreadable())?;
    free.write_all(b"    ").map_err(|_| unreadable())?;
    free.write_all(talk.row(2)?.text(0).ok_or_else(unreadable)?).map_err(|_| unreadable())?;
    let unused = free.len();
    let names = &names[..24 - unused];

    let (id, customer_place) = match payer.customer {
        Customer::Id(id) => (id, 3),
        Customer::LastName(_) => {
            let id = middle_customer(talk, 3)?;
            talk.add(PaymentCustomer).int(payer.warehouse).int(payer.district).int(id);
            talk.send().await?;
            (id, 0)
        }
    };
    let amount = i64::from(amount);
    if talk.row(customer_place)?.text(CREDIT) == Some(b"BC") {
        talk.add(PaymentCustomerData).int(payer.warehouse).int(payer.district).int(id);
        talk.send().await?;
        let Talk { batch, results, .. } = talk;
        let old = results.row(0, 0).and_then(|row| row.text(0)).ok_or_else(unreadable)?;
        let update = batch.add(PaymentCustomerUpdateBad).cents(amount).cents(amount);
        let update = update.written(|out| {
            let start = out.len();
            write!(
                out,
                "{id} {} {} {district} {warehouse} {}.{:02} ",
                payer.district,
                payer.warehouse,
                amount / 100,
                amount % 100
            )
            .expect("writing to memory cannot fail");
            let room = DATA_MAX - (out.len() - start);
            out.extend_from_slice(&old[..old.len().min(room)]);
        });
        update.int(payer.warehouse).int(payer.district).int(id);
    } else {
        let update = talk.add(PaymentCustomerUpdate).cents(amount).cents(amount);
        update.int(payer.warehouse).int(payer.district).int(id);
    }
    let history = talk.add(PaymentHistory).int(id).int(payer.district).int(payer.warehouse);
    history.int(district).int(warehouse).cents(amount).text(names);
    talk.add(PaymentDistrictUpdate).cents(amount).int(warehouse).int(district);
    talk.add(PaymentWarehouseUpdate).cents(amount).int(warehouse);
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
