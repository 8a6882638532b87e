use assay_sql::{DbError, Driver};

use super::begin::{Level::ReadCommitted, begin};
use crate::{
    brokerage::{
        fees,
        ids::{Size, account_id, company_id, customer_address, customer_id, write_symbol},
        names::exchange_id,
        people::Person,
        plan::Brokerage,
        statements::Statement::{
            Commit, MaintenanceAccountPermission, MaintenanceAddress, MaintenanceCompany, MaintenanceCustomer,
            MaintenanceCustomerTaxrate, MaintenanceDailyMarket, MaintenanceExchange, MaintenanceFinancial,
            MaintenanceNewsItem, MaintenanceSecurity, MaintenanceTaxrate, MaintenanceWatchItem,
        },
    },
    talk::{Outcome, Talk},
};

/// A small change of one of twelve tables; which row follows from a customer's number.
pub(super) async fn run<D: Driver>(
    talk: &mut Talk<'_, D>,
    workload: &Brokerage,
    size: Size,
    table: usize,
    customer: u32,
) -> Result<Outcome, DbError> {
    let company = company_id(customer % size.companies());
    let security = customer % size.securities();
    let symbol = |out: &mut Vec<u8>| write_symbol(size, security, out);
    begin(talk, ReadCommitted);
    match table {
        0 => talk.add(MaintenanceAccountPermission).int(account_id(customer, 0)),
        1 => talk.add(MaintenanceAddress).int(customer_address(size, customer)),
        2 => talk.add(MaintenanceCompany).int(company),
        3 => talk.add(MaintenanceCustomer).int(customer_id(customer)),
        4 => talk.add(MaintenanceCustomerTaxrate).int(customer_id(customer)),
        5 => talk.add(MaintenanceDailyMarket).written(symbol),
        6 => talk.add(MaintenanceExchange).text(exchange_id(fees::exchange_of(security)).as_bytes()),
        7 => talk.add(MaintenanceFinancial).int(company),
        8 => talk.add(MaintenanceNewsItem).int(company),
        9 => talk.add(MaintenanceSecurity).written(symbol),
        10 => {
            let rate = Person::of(workload.rows_seed, customer).division_rate;
            talk.add(MaintenanceTaxrate).written(|out| fees::write_tax_id(rate, out))
        }
        _ => {
            let list = customer_id(customer);
            talk.add(MaintenanceWatchItem).int(list).int(list).int(list)
        }
    };
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
