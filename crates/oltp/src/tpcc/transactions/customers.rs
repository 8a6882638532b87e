use assay_sql::{DbError, Driver};

use crate::talk::Talk;

/// Of customers of one name the one in the middle, rounded up, by first name (clauses 2.5.2.2 and 2.6.2.2).
pub(super) fn middle_customer<D: Driver>(talk: &Talk<'_, D>, place: usize) -> Result<u32, DbError> {
    let count = talk.results.count(place);
    let row = talk.results.row(place, count.div_ceil(2).saturating_sub(1));
    let id = row
        .and_then(|row| row.int(0))
        .ok_or_else(|| DbError::other("no customer has a last name that all districts have"))?;
    Ok(id as u32)
}
