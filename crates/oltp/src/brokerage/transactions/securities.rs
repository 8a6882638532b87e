use assay_sql::{DbError, Driver, write_date};

use super::begin::{Level::ReadCommitted, begin};
use crate::{
    brokerage::{
        ids::{Size, write_symbol},
        input::{BROKERS_MAX, Watched},
        names::{broker_name, industry_id, write_sector_name},
        statements::Statement::{
            BrokerVolumeVolumes, Commit, MarketWatchAccount, MarketWatchIndustry, MarketWatchList,
            SecurityDetailCompetitors, SecurityDetailDays, SecurityDetailLastTrade, SecurityDetailNews,
            SecurityDetailNewsItems, SecurityDetailQuarters, SecurityDetailSecurity,
        },
    },
    talk::{Outcome, Talk},
};

/// How much the securities that are watched gained or lost since a day.
pub(super) async fn watch<D: Driver>(talk: &mut Talk<'_, D>, watched: &Watched, day: i32) -> Result<Outcome, DbError> {
    begin(talk, ReadCommitted);
    let day = |out: &mut Vec<u8>| write_date(day.into(), out);
    match watched {
        Watched::List { customer } => talk.add(MarketWatchList).written(day).int(*customer),
        Watched::Account { account } => talk.add(MarketWatchAccount).written(day).int(*account),
        Watched::Industry { industry, companies } => talk
            .add(MarketWatchIndustry)
            .written(day)
            .text(industry_id(*industry).as_bytes())
            .int(companies.0)
            .int(companies.1),
    };
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}

/// All about a security and its company.
pub(super) async fn detail<D: Driver>(
    talk: &mut Talk<'_, D>,
    size: Size,
    security: u32,
    from_day: i32,
    whole_news: bool,
) -> Result<Outcome, DbError> {
    begin(talk, ReadCommitted);
    let symbol = |out: &mut Vec<u8>| write_symbol(size, security, out);
    talk.add(SecurityDetailSecurity).written(symbol);
    talk.add(SecurityDetailCompetitors).written(symbol);
    talk.add(SecurityDetailQuarters).written(symbol);
    talk.add(SecurityDetailDays).written(symbol).written(|out| write_date(from_day.into(), out));
    talk.add(SecurityDetailLastTrade).written(symbol);
    talk.add(if whole_news { SecurityDetailNewsItems } else { SecurityDetailNews }).written(symbol);
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}

/// The limit orders of brokers in a sector.
pub(super) async fn broker_volume<D: Driver>(
    talk: &mut Talk<'_, D>,
    brokers: &[u32],
    sector: u32,
) -> Result<Outcome, DbError> {
    begin(talk, ReadCommitted);
    let mut asked = talk.add(BrokerVolumeVolumes).written(|out| write_sector_name(sector, out));
    for place in 0..BROKERS_MAX {
        asked = asked.text(broker_name(brokers[place.min(brokers.len() - 1)]).as_bytes());
    }
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
