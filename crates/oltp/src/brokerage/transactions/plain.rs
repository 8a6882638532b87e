use assay_sql::Driver;

use super::{feed, maintenance, order, positions, result, securities, seek};
use crate::{
    brokerage::{
        desk::Effect,
        input::{Input, Request},
        plan::Brokerage,
    },
    talk::{Outcome, Talk},
    workload::Done,
};

/// A transaction as statements.
pub(crate) async fn run<D: Driver>(talk: &mut Talk<'_, D>, workload: &Brokerage, request: &Request) -> Done<Brokerage> {
    let size = request.size;
    let plainly = |outcome: Outcome| (outcome, Effect::Nothing);
    match &request.input {
        Input::TradeResult(executed) => result::run(talk, size, executed).await.map(plainly),
        Input::TradeStatus { account } => positions::trade_status(talk, *account).await.map(plainly),
        Input::MarketWatch { watched, day } => securities::watch(talk, watched, *day).await.map(plainly),
        Input::SecurityDetail { security, from_day, whole_news } => {
            securities::detail(talk, size, *security, *from_day, *whole_news).await.map(plainly)
        }
        Input::CustomerPosition { customer, by_tax_id, history } => {
            positions::customer_position(talk, *customer, *by_tax_id, *history).await.map(plainly)
        }
        Input::TradeOrder(order) => order::run(talk, workload, size, order).await.map(plainly),
        Input::TradeLookup(sought) => seek::look_up(talk, size, sought).await.map(plainly),
        Input::BrokerVolume { brokers, sector } => securities::broker_volume(talk, brokers, *sector).await.map(plainly),
        Input::TradeUpdate { sought } => seek::update(talk, size, sought).await.map(plainly),
        Input::MarketFeed { quotes, traded_us } => feed::run(talk, size, quotes, *traded_us).await,
        Input::DataMaintenance { table, customer } => {
            maintenance::run(talk, workload, size, *table, *customer).await.map(plainly)
        }
    }
}
