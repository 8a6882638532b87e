//! The statements of the five transactions, and the calls of their procedures.

assay_sql::statements! {
    NewOrderWarehouse = "new_order.warehouse",
    NewOrderCustomer = "new_order.customer",
    NewOrderDistrict = "new_order.district",
    NewOrderDistrictNext = "new_order.district_next",
    NewOrderItem = "new_order.item",
    NewOrderOrder = "new_order.order",
    NewOrderNewOrder = "new_order.new_order",
    NewOrderStock = "new_order.stock",
    NewOrderStockRead = "new_order.stock_read",
    NewOrderStockUpdate = "new_order.stock_update",
    NewOrderLine = "new_order.order_line",
    PaymentWarehouse = "payment.warehouse",
    PaymentDistrict = "payment.district",
    PaymentByName = "payment.by_name",
    PaymentCustomer = "payment.customer",
    PaymentCustomerData = "payment.customer_data",
    PaymentCustomerUpdate = "payment.customer_update",
    PaymentCustomerUpdateBad = "payment.customer_update_bad",
    PaymentDistrictUpdate = "payment.district_update",
    PaymentWarehouseUpdate = "payment.warehouse_update",
    PaymentHistory = "payment.history",
    OrderStatusByName = "order_status.by_name",
    OrderStatusCustomer = "order_status.customer",
    OrderStatusLastOrder = "order_status.last_order",
    OrderStatusLines = "order_status.lines",
    DeliveryOldest = "delivery.oldest",
    DeliveryDelete = "delivery.delete",
    DeliveryCustomerOf = "delivery.customer_of",
    DeliveryOrderUpdate = "delivery.order_update",
    DeliveryLinesUpdate = "delivery.lines_update",
    DeliveryAmount = "delivery.amount",
    DeliveryCustomerUpdate = "delivery.customer_update",
    StockLevelDistrict = "stock_level.district",
    StockLevelCount = "stock_level.count",
    CallNewOrder = "call.new_order",
    CallPayment = "call.payment",
    CallOrderStatus = "call.order_status",
    CallDelivery = "call.delivery",
    CallStockLevel = "call.stock_level",
}

#[cfg(test)]
mod tests {
    use assay_sql::{Kind, Section};

    use super::Statement;
    use crate::{tpcc::Tpcc, workload::all_sections};

    /// The statements for SQL Server without their comments.
    fn mssql() -> Vec<(String, String)> {
        let bare = |section: Section| {
            let lines: Vec<_> = section.text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
            (section.name, lines.join("\n"))
        };
        all_sections::<Tpcc>(Kind::Mssql, "statements").unwrap().into_iter().map(bare).collect()
    }

    #[test]
    fn only_what_begins_and_ends_a_transaction_has_no_parameters_on_sql_server() {
        let bare = mssql().into_iter().filter(|(_, text)| !text.contains('$')).map(|(name, _)| name);
        let known: Vec<_> = bare.filter(|name| !name.starts_with("session.")).collect();
        assert_eq!(known, ["begin", "commit", "rollback"]);
    }

    #[test]
    fn statements_that_give_rows_on_sql_server_can_be_told_from_others() {
        let gives_rows = |wanted: &str| {
            let (_, text) = mssql().into_iter().find(|(name, _)| name == wanted).unwrap();
            text.starts_with("SELECT") || text.starts_with("EXECUTE") || text.contains("\nOUTPUT")
        };
        for name in ["new_order.district", "new_order.stock", "payment.by_name", "stock_level.count", "call.delivery"] {
            assert!(gives_rows(name), "{name}");
        }
        for name in ["new_order.order", "delivery.delete", "payment.customer_update"] {
            assert!(!gives_rows(name), "{name}");
        }
    }

    #[test]
    fn the_text_for_sql_server_is_in_its_dialect_and_complete() {
        for (name, text) in mssql() {
            for foreign in ["FOR UPDATE", "LIMIT ", "utc_timestamp", "SIGNED", "CALL ", "RETURNING"] {
                assert!(!text.contains(foreign), "{name}: {foreign}");
            }
        }
        let is_of_others = ["new_order.district_next", "new_order.stock_read", "new_order.stock_update"];
        for name in Statement::NAMES {
            assert_eq!(!mssql().iter().any(|(known, _)| known == name), is_of_others.contains(name), "{name}");
        }
    }
}
