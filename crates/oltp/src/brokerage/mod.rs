//! The TPC-E-like workload, derived and not comparable: 33 tables of a brokerage, its customers' orders, and the market that answers
//! them.

mod clock;
mod desk;
mod fees;
mod holdings;
mod ids;
mod input;
mod kinds;
mod market;
mod names;
mod people;
mod plan;
mod rows;
mod statements;
mod tables;
mod trades;
mod transactions;
mod words;

use assay_loading::{Dataset, Scale, TableCount};
use assay_sql::{Driver, Kind, Layers, Section, layers};

pub(crate) use self::plan::Brokerage;
use self::{
    clock::Clock,
    desk::{Effect, Exchange},
    ids::{BLOCK, Size},
    input::{Request, User},
    plan::Shape,
    rows::BrokerageChunk,
    statements::Statement,
    tables::BrokerageTable,
};
use crate::{
    random::Random,
    talk::Talk,
    workload::{Done, Transaction, Workload},
};

const FILES: [(&str, Layers); 10] = [
    ("schema", layers!("sql", "schema", postgresql, mssql)),
    ("indexes", layers!("sql", "indexes", postgresql)),
    ("foreign_keys", layers!("sql", "foreign_keys")),
    ("statements", layers!("sql", "statements", postgresql, mariadb, mssql)),
    ("procedures", layers!("sql", "procedures", postgresql, mariadb, mssql)),
    ("conditions", layers!("sql", "conditions")),
    ("references", layers!("sql", "references")),
    ("session", layers!("sql", "session", postgresql)),
    ("cleanup", layers!("sql", "cleanup")),
    ("drop", layers!("sql", "drop", postgresql)),
];

/// A stream of random numbers for exchanges.
const EXCHANGE: u64 = 203;

impl Dataset for Brokerage {
    const KIND: &'static str = "brokerage";
    /// A broker for each hundred customers; the most are some terabytes.
    const SCALE: Scale = Scale { one: "customer", many: "customers", step: BLOCK, max: 10_000_000 };

    type Shape = Shape;
    type Chunk = BrokerageChunk;

    fn row_counts(customers: u32, shape: Shape) -> Vec<TableCount> {
        let size = Size { customers };
        BrokerageTable::ALL.iter().map(|table| (table.name(), table.row_count(size, shape))).collect()
    }
}

impl Workload for Brokerage {
    const KIND: &'static str = <Self as Dataset>::KIND;
    const UNIT: &'static str = <Self as Dataset>::SCALE.one;
    const STATEMENTS: &'static [&'static str] = Statement::NAMES;
    const USERS_PER_CLERK: u32 = 2;

    type User = User;
    type Input = Request;
    type Effect = Effect;
    type Desk = Exchange;

    /// No user keys or thinks. Transactions without a share in a mix follow from others.
    fn transactions(&self) -> Vec<Transaction> {
        let names = [
            "trade_result",
            "trade_status",
            "market_watch",
            "security_detail",
            "customer_position",
            "trade_order",
            "trade_lookup",
            "broker_volume",
            "trade_update",
            "market_feed",
            "data_maintenance",
        ];
        names.into_iter().map(|name| Transaction::new(name, 0.0, 0.0)).collect()
    }

    fn sections(dialect: Kind, file: &str) -> Option<Vec<Section>> {
        let (_, layers) = FILES.iter().find(|(name, _)| *name == file)?;
        Some(layers.sections(dialect))
    }

    fn user(&self, database: usize, customers: u32, _number: u32) -> User {
        User { size: Size { customers }, database }
    }

    fn draw(&self, user: &mut User, transaction: usize, random: &mut Random) -> Request {
        Request { size: user.size, input: input::draw(self, user, transaction, random) }
    }

    fn desk(&self, seed: u64, database: usize, customers: u32, thread: u32) -> Exchange {
        let size = Size { customers };
        let random = Random::of(seed, EXCHANGE, (database as u64) << 32 | u64::from(thread));
        Exchange::new(size, Clock::new(self.days), random, self.busy(database, size.blocks()), thread == 0)
    }

    fn begins(&self, request: &mut Request, now_ns: u64) {
        request.input.begins(Clock::new(self.days), now_ns);
    }

    async fn run<D: Driver>(&self, talk: &mut Talk<'_, D>, _user: &mut Self::User, request: &Request) -> Done<Self> {
        transactions::run(talk, self, request).await
    }

    async fn call<D: Driver>(&self, talk: &mut Talk<'_, D>, request: &Request) -> Done<Self> {
        transactions::call(talk, self, request).await
    }

    fn prepares(name: &str, procedures: bool) -> bool {
        procedures || !name.starts_with("call.")
    }
}
