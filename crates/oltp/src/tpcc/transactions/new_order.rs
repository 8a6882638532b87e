use assay_sql::{DbError, Driver};

use crate::{
    talk::{Outcome, Talk, unreadable},
    tpcc::{
        input::{LINES_MAX, Line},
        statements::Statement::{
            Begin, Commit, NewOrderCustomer, NewOrderDistrict, NewOrderDistrictNext, NewOrderItem, NewOrderLine,
            NewOrderNewOrder, NewOrderOrder, NewOrderStock, NewOrderStockRead, NewOrderStockUpdate, NewOrderWarehouse,
            Rollback,
        },
    },
};

/// Places of the first batch.
const DISTRICT: usize = 3;
const FIRST_ITEM: usize = 4;

/// Clause 2.4: an order of several lines. Three batches where stock is read and changed in one statement, else four.
pub(super) async fn run<D: Driver>(
    talk: &mut Talk<'_, D>,
    warehouse: u32,
    district: u32,
    customer: u32,
    lines: &[Line],
) -> Result<(Outcome, i64), DbError> {
    talk.add(Begin);
    talk.add(NewOrderWarehouse).int(warehouse);
    talk.add(NewOrderCustomer).int(warehouse).int(district).int(customer);
    talk.add(NewOrderDistrict).int(warehouse).int(district);
    for line in lines {
        talk.add(NewOrderItem).int(line.item);
    }
    talk.send().await?;
    let order = talk.int(DISTRICT, 0)?;
    // Cents of each line; nothing for an item that does not exist.
    let mut amounts = [None; LINES_MAX];
    for (index, line) in lines.iter().enumerate() {
        if let Some(item) = talk.results.row(FIRST_ITEM + index, 0) {
            amounts[index] = Some(item.cents(0).ok_or_else(unreadable)? * i64::from(line.quantity));
        }
    }
    // All lines but the unknown one are worked on, and then rolled back with the rest.
    let known = || lines.iter().enumerate().filter(|(index, _)| amounts[*index].is_some());

    let all_local = lines.iter().all(|line| line.supply_warehouse == warehouse);
    if talk.driver.has(NewOrderDistrictNext.into()) {
        talk.add(NewOrderDistrictNext).int(warehouse).int(district);
    }
    talk.add(NewOrderOrder)
        .int(order)
        .int(district)
        .int(warehouse)
        .int(customer)
        .int(lines.len() as i64)
        .int(all_local);
    talk.add(NewOrderNewOrder).int(order).int(district).int(warehouse);
    let first_stock = talk.batch.len();
    let at_once = talk.driver.has(NewOrderStock.into());
    for (_, line) in known() {
        let remote = line.supply_warehouse != warehouse;
        if at_once {
            let stock = talk.add(NewOrderStock).int(line.quantity).int(remote);
            stock.int(district).int(line.item).int(line.supply_warehouse);
        } else {
            talk.add(NewOrderStockRead).int(district).int(line.item).int(line.supply_warehouse);
        }
    }
    talk.send().await?;

    // The third batch's parameters come from rows of the second, which stay until it is sent.
    let dist_column = usize::from(!at_once);
    for (place, (index, line)) in known().enumerate() {
        let Talk { batch, results, .. } = talk;
        let stock = results.row(first_stock + place, 0).ok_or_else(unreadable)?;
        if !at_once {
            let quantity = left_in_stock(stock.int(0).ok_or_else(unreadable)?, line.quantity);
            let remote = line.supply_warehouse != warehouse;
            let update = batch.add(NewOrderStockUpdate).int(quantity).int(line.quantity).int(remote);
            update.int(line.item).int(line.supply_warehouse);
        }
        let insert = batch.add(NewOrderLine).int(order).int(district).int(warehouse).int(index as i64 + 1);
        let insert = insert.int(line.item).int(line.supply_warehouse).int(line.quantity);
        insert.cents(amounts[index].unwrap_or(0)).text(stock.text(dist_column).ok_or_else(unreadable)?);
    }
    let is_whole = amounts[..lines.len()].iter().all(Option::is_some);
    talk.add(if is_whole { Commit } else { Rollback });
    talk.send().await?;
    Ok((if is_whole { Outcome::Committed } else { Outcome::RolledBack }, order))
}

/// Clause 2.4.2.2: stock that would fall below ten is filled up by 91.
fn left_in_stock(quantity: i64, ordered: u32) -> i64 {
    let left = quantity - i64::from(ordered);
    if left >= 10 { left } else { left + 91 }
}

#[cfg(test)]
mod tests {
    use super::left_in_stock;

    #[test]
    fn stock_is_filled_up_before_it_falls_below_ten() {
        assert_eq!((left_in_stock(20, 10), left_in_stock(19, 10), left_in_stock(10, 1)), (10, 100, 100));
    }
}
