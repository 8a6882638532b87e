use assay_sql::{DbError, Driver};

use super::begin::{Level::ReadCommitted, begin, begun};
use crate::{
    brokerage::{
        ids::customer_id,
        names::tax_number,
        statements::Statement::{
            Commit, CustomerPositionAccounts, CustomerPositionByTaxId, CustomerPositionCustomer,
            CustomerPositionHistory, TradeStatusNames, TradeStatusTrades,
        },
    },
    talk::{Outcome, Talk},
};

/// The last trades of an account.
pub(super) async fn trade_status<D: Driver>(talk: &mut Talk<'_, D>, account: i64) -> Result<Outcome, DbError> {
    begin(talk, ReadCommitted);
    talk.add(TradeStatusTrades).int(account);
    talk.add(TradeStatusNames).int(account);
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}

/// A customer with the worth of the accounts, and the history of one account.
pub(super) async fn customer_position<D: Driver>(
    talk: &mut Talk<'_, D>,
    customer: u32,
    by_tax_id: bool,
    history: bool,
) -> Result<Outcome, DbError> {
    begin(talk, ReadCommitted);
    let mut id = customer_id(customer);
    if by_tax_id {
        let place = begun(talk, ReadCommitted);
        talk.add(CustomerPositionByTaxId).text(tax_number(customer).as_bytes());
        talk.send().await?;
        id = talk.int(place, 0)?;
    }
    let place = talk.batch.len() + 1;
    talk.add(CustomerPositionCustomer).int(id);
    talk.add(CustomerPositionAccounts).int(id);
    if history {
        talk.send().await?;
        let account = talk.int(place, 0)?;
        talk.add(CustomerPositionHistory).int(account);
    }
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
