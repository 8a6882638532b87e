use assay_sql::{DbError, Driver};

use crate::{
    talk::{Outcome, Talk},
    tpcc::statements::Statement::{Begin, Commit, StockLevelCount, StockLevelDistrict},
};

/// Clause 2.8: items of the last twenty orders of which little is left.
pub(super) async fn run<D: Driver>(
    talk: &mut Talk<'_, D>,
    warehouse: u32,
    district: u32,
    threshold: u32,
) -> Result<Outcome, DbError> {
    talk.add(Begin);
    talk.add(StockLevelDistrict).int(warehouse).int(district);
    talk.send().await?;
    let next = talk.int(1, 0)?;
    talk.add(StockLevelCount).int(warehouse).int(district).int(next).int(next).int(threshold);
    talk.add(Commit);
    talk.send().await?;
    talk.int(0, 0)?;
    Ok(Outcome::Committed)
}
