//! Waiting for times to the microsecond, for all sessions of a thread by one timer: those of the runtime go by the millisecond.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::BinaryHeap,
    future::poll_fn,
    io,
    pin::pin,
    task::Poll,
    time::Duration,
};

use tokio::sync::{Notify, oneshot};

use crate::pacer::Pacer;

/// The longest sleep; a new one follows.
const SLEEP_MAX: Duration = Duration::from_millis(20);

struct Alarm {
    due_ns: u64,
    number: u64,
    bell: oneshot::Sender<()>,
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        (self.due_ns, self.number) == (other.due_ns, other.number)
    }
}

impl Eq for Alarm {}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due_ns, self.number).cmp(&(other.due_ns, other.number))
    }
}

pub(super) struct Alarms {
    pacer: Pacer,
    set: RefCell<BinaryHeap<Reverse<Alarm>>>,
    earlier: Notify,
    number: Cell<u64>,
}

impl Alarms {
    pub(super) fn new() -> io::Result<Self> {
        let (set, earlier, number) = (RefCell::default(), Notify::new(), Cell::new(0));
        Ok(Self { pacer: Pacer::new()?, set, earlier, number })
    }

    /// Waits until a time on the thread's clock; false when it will not come.
    pub(super) async fn until(&self, due_ns: u64) -> bool {
        let (bell, rung) = oneshot::channel();
        let number = self.number.replace(self.number.get() + 1);
        let is_first = {
            let mut set = self.set.borrow_mut();
            let is_first = set.peek().is_none_or(|Reverse(alarm)| due_ns < alarm.due_ns);
            set.push(Reverse(Alarm { due_ns, number, bell }));
            is_first
        };
        if is_first {
            self.earlier.notify_one();
        }
        rung.await.is_ok()
    }

    /// Rings alarms at their times, until `stops` says so; then those that wait are told that their time will not come.
    pub(super) async fn ring(&self, now_ns: impl Fn() -> u64, stops: impl Fn() -> bool) {
        while !stops() {
            let rest = self.ring_due(now_ns());
            self.rest(rest.min(SLEEP_MAX)).await;
        }
        self.set.borrow_mut().clear();
    }

    /// Rings the alarms that are due; gives the time until the next.
    fn ring_due(&self, now_ns: u64) -> Duration {
        let mut set = self.set.borrow_mut();
        while set.peek().is_some_and(|Reverse(alarm)| alarm.due_ns <= now_ns) {
            if let Some(Reverse(alarm)) = set.pop() {
                let _ = alarm.bell.send(());
            }
        }
        set.peek().map_or(SLEEP_MAX, |Reverse(alarm)| Duration::from_nanos(alarm.due_ns - now_ns))
    }

    /// Rests so long, or until an earlier alarm is set.
    async fn rest(&self, time: Duration) {
        let mut timer = pin!(self.pacer.wait(time));
        let mut earlier = pin!(self.earlier.notified());
        poll_fn(|context| {
            if timer.as_mut().poll(context).is_ready() || earlier.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, time::Instant};

    use tokio::task::LocalSet;

    use super::*;

    #[test]
    fn alarms_ring_in_their_order_and_never_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = LocalSet::new();
        tasks.block_on(&runtime, async {
            let (alarms, begun) = (Rc::new(Alarms::new().unwrap()), Instant::now());
            let rung = Rc::new(RefCell::new(Vec::new()));
            let now_ns = move || begun.elapsed().as_nanos() as u64;
            for due_us in [3000_u64, 200, 1500, 1500, 0] {
                let (alarms, rung) = (alarms.clone(), rung.clone());
                tokio::task::spawn_local(async move {
                    assert!(alarms.until(due_us * 1000).await);
                    assert!(now_ns() >= due_us * 1000);
                    rung.borrow_mut().push(due_us);
                });
            }
            let late = alarms.clone();
            let dropped = tokio::task::spawn_local(async move { late.until(u64::MAX).await });
            let count = rung.clone();
            alarms.ring(now_ns, || count.borrow().len() == 5).await;
            assert_eq!(*rung.borrow(), [0, 200, 1500, 1500, 3000]);
            assert!(!dropped.await.unwrap());
        });
    }
}
