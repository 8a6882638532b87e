use crate::{Completion, Outcome, Queue, QueueError, Step, Worker};

/// Drives one worker on its queue until it is done. The hot path reads the clock twice an I/O at most: before
/// submitting, and (inside the queue) when completions are seen.
///
/// # Errors
/// The queue broke; the worker's counts are handed over before.
pub fn run_worker<Q: Queue>(queue: &mut Q, worker: &mut Worker) -> Result<Outcome, QueueError> {
    let outcome = drive(queue, worker);
    let now_ns = queue.now_ns();
    worker.finish(now_ns, queue.cpu_ns());
    outcome
}

fn drive<Q: Queue>(queue: &mut Q, worker: &mut Worker) -> Result<Outcome, QueueError> {
    let mut completions: Vec<Completion> = Vec::with_capacity(4096);
    worker.begin(queue.cpu_ns());
    loop {
        let now_ns = queue.now_ns();
        if worker.tick_due(now_ns) {
            worker.tick(now_ns, queue.cpu_ns());
            if worker.not_answering(now_ns).is_some() {
                // A process that was suspended finds its own absence here: what ended meanwhile is counted first.
                queue.wait(0, now_ns, &mut completions)?;
                completions.drain(..).for_each(|completion| worker.complete(completion));
                if let Some(outcome) = worker.not_answering(now_ns) {
                    return Ok(outcome);
                }
            }
        }
        match worker.step(now_ns) {
            Step::Done(outcome) => return Ok(outcome),
            Step::Go { submit, min, until_ns } => {
                if !submit.is_empty() {
                    queue.submit(submit)?;
                }
                queue.wait(min, until_ns, &mut completions)?;
            }
        }
        completions.drain(..).for_each(|completion| worker.complete(completion));
    }
}
