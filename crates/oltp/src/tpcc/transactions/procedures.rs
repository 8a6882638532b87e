use assay_sql::{Driver, Kind, Parameters, write_int};

use crate::{
    talk::Talk,
    tpcc::{
        input::{Customer, Input, Line},
        statements::Statement::{CallDelivery, CallNewOrder, CallOrderStatus, CallPayment, CallStockLevel},
    },
};

/// Adds the call of a transaction's procedure: one statement, which is a transaction of its own.
pub(crate) fn call<D: Driver>(talk: &mut Talk<'_, D>, input: &Input) {
    match input {
        Input::NewOrder { warehouse, district, customer, lines } => {
            let has_arrays = talk.driver.kind() == Kind::Postgresql;
            let order = talk.add(CallNewOrder).int(*warehouse).int(*district).int(*customer);
            if has_arrays {
                let order = order.written(|out| write_array(lines.iter().map(|line| line.item), out));
                let order = order.written(|out| write_array(lines.iter().map(|line| line.supply_warehouse), out));
                order.written(|out| write_array(lines.iter().map(|line| line.quantity), out));
            } else {
                order.written(|out| write_json(lines, out));
            }
        }
        Input::Payment { warehouse, district, customer_warehouse, customer_district, customer, amount } => {
            let payment = talk.add(CallPayment).int(*warehouse).int(*district);
            let payment = payment.int(*customer_warehouse).int(*customer_district);
            who(payment, *customer).cents((*amount).into());
        }
        Input::OrderStatus { warehouse, district, customer } => {
            who(talk.add(CallOrderStatus).int(*warehouse).int(*district), *customer);
        }
        Input::Delivery { warehouse, carrier } => {
            talk.add(CallDelivery).int(*warehouse).int(*carrier);
        }
        Input::StockLevel { warehouse, district, threshold } => {
            talk.add(CallStockLevel).int(*warehouse).int(*district).int(*threshold);
        }
    }
}

/// A customer as two parameters: the id, 0 for one by name, and the name.
fn who(parameters: Parameters<'_>, customer: Customer) -> Parameters<'_> {
    let id = if let Customer::Id(id) = customer { id } else { 0 };
    parameters.int(id).written(|out| customer.write_name(out))
}

fn write_array(values: impl Iterator<Item = u32>, out: &mut Vec<u8>) {
    write_list(b'{', values, b'}', out, |value, out| write_int(value.into(), out));
}

fn write_json(lines: &[Line], out: &mut Vec<u8>) {
    write_list(b'[', lines.iter(), b']', out, |line, out| {
        let values = [line.item, line.supply_warehouse, line.quantity].into_iter();
        write_list(b'[', values, b']', out, |value, out| write_int(value.into(), out));
    });
}

fn write_list<T>(
    begin: u8,
    values: impl Iterator<Item = T>,
    end: u8,
    out: &mut Vec<u8>,
    write: impl Fn(T, &mut Vec<u8>),
) {
    out.push(begin);
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(value, out);
    }
    out.push(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_as_arrays_and_as_json() {
        let lines =
            [Line { item: 7, supply_warehouse: 1, quantity: 3 }, Line { item: 9, supply_warehouse: 2, quantity: 10 }];
        let mut out = Vec::new();
        write_json(&lines, &mut out);
        write_array(lines.iter().map(|line| line.item), &mut out);
        write_array([].into_iter(), &mut out);
        assert_eq!(out, b"[[7,1,3],[9,2,10]]{7,9}{}");
    }
}
