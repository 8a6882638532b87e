//! The TPC-C-like workload: nine tables of an order business, and five transactions on them.

mod desk;
mod input;
mod ledger;
mod nurand;
mod plan;
mod rows;
mod statements;
mod transactions;

use assay_loading::{ByScale, Dataset, Scale};
use assay_sql::{Driver, Kind, Layers, Section, layers};
use serde_json::Value;

pub(crate) use self::plan::Tpcc;
use self::{
    desk::Clerkless,
    input::{Input, User},
    rows::{LoadChunk, TpccTable},
    statements::Statement,
};
use crate::{
    random::Random,
    talk::Talk,
    workload::{Done, Transaction, Workload},
};

const FILES: [(&str, Layers); 6] = [
    ("schema", layers!("sql", "schema", postgresql, mssql)),
    ("indexes", layers!("sql", "indexes", postgresql)),
    ("statements", layers!("sql", "statements", postgresql, mssql)),
    ("procedures", layers!("sql", "procedures", postgresql, mariadb, mssql)),
    ("conditions", layers!("sql", "conditions")),
    ("drop", layers!("sql", "drop", postgresql)),
];

impl Dataset for Tpcc {
    const KIND: &'static str = "tpcc";
    /// The most are ten terabytes.
    const SCALE: Scale = Scale { one: "warehouse", many: "warehouses", step: 1, max: 100_000 };

    type Shape = ByScale;
    type Chunk = LoadChunk;

    fn row_counts(warehouses: u32, _shape: ByScale) -> Vec<(&'static str, u64)> {
        TpccTable::ALL.iter().map(|table| (table.name(), table.row_count(warehouses))).collect()
    }
}

impl Workload for Tpcc {
    const KIND: &'static str = <Self as Dataset>::KIND;
    const UNIT: &'static str = <Self as Dataset>::SCALE.one;
    const STATEMENTS: &'static [&'static str] = Statement::NAMES;

    type User = User;
    type Input = Input;
    type Effect = Option<i64>;
    type Desk = Clerkless;

    /// Times of clauses 5.2.5.2 and 5.2.5.4.
    fn transactions(&self) -> Vec<Transaction> {
        vec![
            Transaction::new("new_order", 18.0, 12.0),
            Transaction::new("payment", 3.0, 12.0),
            Transaction::new("order_status", 2.0, 10.0),
            Transaction::new("delivery", 2.0, 5.0),
            Transaction::new("stock_level", 2.0, 5.0),
        ]
    }

    fn sections(dialect: Kind, file: &str) -> Option<Vec<Section>> {
        let (_, layers) = FILES.iter().find(|(name, _)| *name == file)?;
        Some(layers.sections(dialect))
    }

    fn user(&self, _database: usize, warehouses: u32, number: u32) -> User {
        User::new(warehouses, number)
    }

    fn draw(&self, user: &mut User, transaction: usize, random: &mut Random) -> Input {
        input::draw(self, user, transaction, random)
    }

    fn desk(&self, _seed: u64, database: usize, _scale: u32, _thread: u32) -> Clerkless {
        Clerkless { ledger: self.keeps_orders.then(|| self.ledger.clone()), database }
    }

    fn acknowledged(&self) -> Value {
        self.ledger.told()
    }

    async fn run<D: Driver>(&self, talk: &mut Talk<'_, D>, _user: &mut User, input: &Input) -> Done<Self> {
        transactions::run(talk, input).await
    }

    async fn call<D: Driver>(&self, talk: &mut Talk<'_, D>, input: &Input) -> Done<Self> {
        transactions::call(talk, input);
        let outcome = talk.call().await?;
        let order = if let Input::NewOrder { .. } = input { talk.row(0).ok().and_then(|row| row.int(0)) } else { None };
        Ok((outcome, order))
    }
}
