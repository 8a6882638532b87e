//! One user on a clock of numbers: the same transactions in the same order with the same times, whatever the database and the host. What
//! they leave behind can be compared row by row.

use std::time::Duration;

use assay_loading::DatabaseError;
use assay_sql::{AnyDriver, Batch, DbError, Driver, Results, Setup};

use crate::{
    inputs::{Drawn, Inputs},
    plan::RunPlan,
    run::{sessions, statements},
    talk::{Outcome, Talk},
    users::run_once,
    workload::{Desk, Workload},
};

/// Transactions of one kind that were committed, and that their user rolled back.
pub type SerialCount = (String, u64, u64);

/// Runs a transaction of a user at each step of a clock on the first database of a plan, and the work that follows from
/// it.
///
/// # Errors
/// [`DatabaseError::InvalidPlan`] when the plan is impossible, others when a transaction fails.
pub(crate) fn run_serial<W: Workload>(
    plan: &RunPlan,
    mut workload: W,
    steps: u64,
    step_ns: u64,
) -> Result<Vec<SerialCount>, DatabaseError> {
    plan.validate(workload.transactions().len(), W::UNIT)?;
    workload.ready(plan)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| DatabaseError::Other(format!("no runtime: {error}")))?;
    let place = plan.databases[0].connection.place();
    let done = runtime.block_on(steps_of(plan, &workload, steps, step_ns));
    done.map_err(|error| DatabaseError::Other(format!("{place}: {}", error.text)))
}

async fn steps_of<W: Workload>(
    plan: &RunPlan,
    workload: &W,
    steps: u64,
    step_ns: u64,
) -> Result<Vec<SerialCount>, DbError> {
    let database = &plan.databases[0];
    let prepared = statements::<W>(database, plan.procedures);
    let setup = Setup {
        isolation: plan.isolation,
        statements: &prepared,
        pipeline: plan.procedures || plan.pipeline,
        bulk: false,
        within: Duration::from_secs_f64(plan.connect_s),
    };
    let mut driver = AnyDriver::connect(&database.connection, setup).await?;
    for text in sessions::<W>(database) {
        driver.execute(&text).await?;
    }
    let (mut batch, mut results) = (Batch::default(), Results::default());
    let desk = workload.desk(plan.seed, 0, database.scale, 0);
    let mut inputs = Inputs::new(plan, workload, 0, 0);
    let mut counts: Vec<SerialCount> =
        workload.transactions().into_iter().map(|transaction| (transaction.name.into_owned(), 0, 0)).collect();
    for step in 1..=steps {
        let now_ns = step * step_ns;
        let mut is_users = false;
        loop {
            let mut drawn = match desk.give_out(now_ns) {
                Some((_, transaction, input)) => Drawn { transaction, input },
                None if is_users => break,
                None => {
                    is_users = true;
                    inputs.next()
                }
            };
            workload.begins(&mut drawn.input, now_ns);
            let mut talk = Talk::new(&mut driver, &mut batch, &mut results, W::KIND);
            let (outcome, effect) =
                run_once(workload, &mut talk, &mut inputs.user, &drawn.input, plan.procedures).await?;
            match outcome {
                Outcome::Committed => {
                    counts[drawn.transaction].1 += 1;
                    desk.take_in(&drawn.input, effect, now_ns);
                }
                Outcome::RolledBack => counts[drawn.transaction].2 += 1,
            }
            desk.ended(&drawn.input);
        }
    }
    driver.close().await;
    Ok(counts)
}
