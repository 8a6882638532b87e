//! The load of mailboxes: operations arrive at the rate that makes the I/Os asked for, whatever the storage does.

use rand::RngExt;
use rand_distr::{Distribution, Exp1};

use crate::{
    database::Event,
    kernel::{Bad, Kernel},
    node::{Change, Content, Slot},
    plan::{Activity, Mix},
};

/// Operations of a database under way at the same time; later ones wait with their clock running.
const RUNNING_MAX: u32 = 512;
/// The load aims so much above the target, so that what is under way at the window's end does not decide.
const ABOVE_TARGET: f64 = 1.005;
/// Over how long a rate that was off is made up for.
const MAKE_UP_S: f64 = 5.0;
/// How often a task that sleeps looks whether a rate was set.
const LOOK_NS: u64 = 100_000_000;
/// Most bytes of a change in the log, except for a split.
const RECORD_MAX_BYTES: usize = 4096;

/// Lets operations begin in time, on the clock of the rate.
pub(super) async fn arrivals(kernel: Kernel, at: usize) {
    let mut rate_of = u64::MAX;
    let (mut next_ns, mut began_ns, mut before) = (0.0, 0.0, 0.0);
    loop {
        // A rate that was set makes a new begin: what was late is forgotten.
        let rate = kernel
            .until(at, Event::Load, |core| {
                if core.rates_set != rate_of {
                    rate_of = core.rates_set;
                    let database = &mut core.databases[at];
                    database.backlog.clear();
                    (next_ns, began_ns, before) = (core.now_ns as f64, core.now_ns as f64, database.ios_needed);
                }
                (core.rate > 0.0 && !core.stopping).then_some(core.rate * ABOVE_TARGET)
            })
            .await;
        // Not longer than a moment at a time: a rate may be set.
        let now_ns = kernel.now_ns();
        kernel.sleep_until((next_ns as u64).min(now_ns + LOOK_NS)).await;
        if (kernel.now_ns() as f64) < next_ns.floor() {
            continue;
        }
        let gap_ns = kernel.with(|core| {
            if core.rates_set != rate_of || core.stopping {
                return None;
            }
            let database = &mut core.databases[at];
            let waiting = f64::from(database.running) + database.backlog.len() as f64;
            let mean = database.ios_mean.max(0.05);
            // I/Os that operations so far needed or will, against those that were to be by now.
            let ahead = database.ios_needed - before + waiting * mean - rate * (next_ns - began_ns) / 1e9;
            let gap: f64 = Exp1.sample(&mut database.rng);
            Some(gap * mean / rate * 1e9 * (1.0 + ahead / (rate * MAKE_UP_S)).clamp(0.5, 2.0))
        });
        let Some(gap_ns) = gap_ns else { continue };
        begin(&kernel, at, next_ns as u64);
        next_ns += gap_ns;
    }
}

/// Begins an operation, or puts it off until another ends.
fn begin(kernel: &Kernel, at: usize, intended_ns: u64) {
    let starts = kernel.of(at, |database| {
        let starts = database.running < RUNNING_MAX;
        if starts {
            database.running += 1;
        } else {
            database.backlog.push_back(intended_ns);
        }
        starts
    });
    if starts {
        kernel.spawn(operations(kernel.clone(), at, intended_ns));
    }
}

/// An operation, and the operations put off behind it; after the end of the load they are left out.
async fn operations(kernel: Kernel, at: usize, mut intended_ns: u64) {
    loop {
        operation(&kernel, at, intended_ns).await;
        let next_ns = kernel.with(|core| {
            let backlog = &mut core.databases[at].backlog;
            if core.stopping {
                backlog.clear();
            }
            backlog.pop_front()
        });
        let Some(next_ns) = next_ns else { break };
        intended_ns = next_ns;
    }
    kernel.with(|core| {
        core.databases[at].running -= 1;
        core.wake(at, Event::Load);
    });
}

/// As many operations at once as are asked for, one after the other until `goes_on` says no.
pub(super) async fn flood(kernel: Kernel, at: usize, goes_on: fn(&Kernel, usize) -> bool) {
    kernel.of(at, |database| database.running += 1);
    while goes_on(&kernel, at) && !kernel.with(|core| core.stopping) {
        operation(&kernel, at, kernel.now_ns()).await;
    }
    kernel.with(|core| {
        core.databases[at].running -= 1;
        core.wake(at, Event::Load);
    });
}

/// Operations that warm a cache at the same time: few, so that storage is not flooded.
const WARMING: u32 = 8;

/// Fills the cache with changes, so that checkpoints write from the begin of the load as much as in the long run.
pub(super) async fn warm(kernel: Kernel, at: usize) {
    if kernel.of(at, |database| database.plan.passive) {
        return;
    }
    for _ in 0..WARMING {
        kernel.spawn(flood(kernel.clone(), at, |kernel, at| kernel.of(at, |database| !database.cleaning.settled)));
    }
    kernel
        .until(at, Event::Load, |core| {
            let database = &core.databases[at];
            (database.running == 0 && (database.cleaning.settled || core.stopping)).then_some(())
        })
        .await;
}

enum Kind {
    Insert,
    Replace,
    Delete,
    Seek,
}

fn drawn(mix: &Mix, draw: f64) -> Kind {
    let Mix { insert, replace, delete } = *mix;
    match draw {
        draw if draw < insert => Kind::Insert,
        draw if draw < insert + replace => Kind::Replace,
        draw if draw < insert + replace + delete => Kind::Delete,
        _ => Kind::Seek,
    }
}

async fn operation(kernel: &Kernel, at: usize, intended_ns: u64) {
    let (kind, key, lazy) = kernel.with(|core| {
        let (mix, lazy_share) = (core.plan.mix, core.plan.lazy_share);
        let database = &mut core.databases[at];
        let kind = drawn(&mix, database.rng.random());
        (kind, database.next_key(), database.rng.random_bool(lazy_share))
    });
    let mut needed_ns = intended_ns;
    let mut ios = 0.0;
    // A bad page ends the operation; it was noted where it was found.
    let done = changed(kernel, at, &kind, key, &mut needed_ns, &mut ios).await;
    kernel.of(at, |database| {
        database.counted(ios);
        let counts = &mut database.operations;
        match kind {
            Kind::Insert => counts.inserts += 1,
            Kind::Replace => counts.replaces += 1,
            Kind::Delete => counts.deletes += 1,
            Kind::Seek => counts.seeks += 1,
        }
    });
    if let (Ok(true), false) = (done, lazy) {
        let lsn = kernel.of(at, |database| database.log.next_lsn);
        kernel.durable(at, lsn).await;
    }
}

/// Finds the leaf and changes it; tells whether anything was changed.
async fn changed(
    kernel: &Kernel,
    at: usize,
    kind: &Kind,
    key: u64,
    needed_ns: &mut u64,
    ios: &mut f64,
) -> Result<bool, Bad> {
    if !matches!(kind, Kind::Seek) {
        kernel.log_room(at, RECORD_MAX_BYTES).await;
    }
    loop {
        let (leaf, parent) = descend(kernel, at, key, needed_ns, ios).await?;
        // Nothing waits from here on, so that the leaf stays what it is.
        let (nearest, count) = kernel.of(at, |database| {
            let slots = database.cache.node(leaf).map_or(&[][..], |node| node.slots());
            let place = slots.partition_point(|slot| slot.key < key);
            (slots.get(place).or(slots.last()).copied(), slots.len())
        });
        let change = match (kind, nearest) {
            (Kind::Seek, _) | (Kind::Replace | Kind::Delete, None) => return Ok(false),
            (Kind::Delete, Some(slot)) => Change::Remove { key: slot.key },
            (Kind::Replace, Some(slot)) => Change::Put { key: slot.key, version: slot.version.wrapping_add(1) },
            (Kind::Insert, Some(slot)) if slot.key == key => Change::Put { key, version: slot.version.wrapping_add(1) },
            (Kind::Insert, _) => {
                let (most, free) =
                    kernel.of(at, |database| (database.shape.leaf_most, database.next_free < database.shape.pages));
                if count >= most && free {
                    split(kernel, at, leaf, parent, needed_ns, ios).await?;
                    continue;
                }
                if count >= most {
                    // The database is full: a record gives its place.
                    let Some(slot) = nearest else { return Ok(false) };
                    kernel.of(at, |database| database.operations.full += 1);
                    Change::Put { key: slot.key, version: slot.version.wrapping_add(1) }
                } else {
                    Change::Put { key, version: 0 }
                }
            }
        };
        let replaces = matches!(&change, Change::Put { version, .. } if *version > 0);
        *ios += f64::from(u8::from(kernel.change(at, leaf, change, replaces)));
        return Ok(true);
    }
}

/// The leaf for a key, which is in the cache, and the inner page above it.
async fn descend(kernel: &Kernel, at: usize, key: u64, needed_ns: &mut u64, ios: &mut f64) -> Result<(u64, u64), Bad> {
    let root = kernel.of(at, |database| database.shape.root());
    let (mut page, mut above) = (root, root);
    loop {
        *ios += f64::from(kernel.fetch(at, page, Activity::Database, needed_ns).await?);
        let next = kernel.of(at, |database| {
            let node = database.cache.node(page)?;
            Some((node.child(key), node.is_leaf()))
        });
        match next {
            // It went again before this task's turn.
            None => {}
            Some((None, _)) => return Ok((page, above)),
            Some((Some(child), is_leaf)) => {
                if !is_leaf {
                    above = page;
                }
                page = child;
            }
        }
    }
}

/// Moves the upper half of a full leaf to a free page, and tells the inner page above of it where that has room.
async fn split(
    kernel: &Kernel,
    at: usize,
    leaf: u64,
    parent: u64,
    needed_ns: &mut u64,
    ios: &mut f64,
) -> Result<(), Bad> {
    let bytes = kernel.with(|core| core.plan.page_bytes as usize) + 3 * RECORD_MAX_BYTES;
    kernel.log_room(at, bytes).await;
    // Both may go from the cache while the other is fetched.
    loop {
        *ios += f64::from(kernel.fetch(at, parent, Activity::Database, needed_ns).await?);
        *ios += f64::from(kernel.fetch(at, leaf, Activity::Database, needed_ns).await?);
        if kernel.of(at, |database| database.cache.node(parent).is_some() && database.cache.node(leaf).is_some()) {
            break;
        }
    }
    let parts = kernel.of(at, |database| {
        let node = database.cache.node(leaf)?;
        let slots = node.slots();
        if slots.len() < database.shape.leaf_most || database.next_free >= database.shape.pages {
            // Another operation was first.
            return None;
        }
        let upper: Vec<Slot> = slots[slots.len().div_ceil(2)..].to_vec();
        let middle = upper.first()?.key;
        let inner = database.cache.node(parent)?;
        let has_room = matches!(&inner.content, Content::Inner(children) if children.len() < database.shape.inner_most);
        let knows = has_room && (inner.low..inner.high).contains(&middle);
        let become_leaf = Change::Become { low: middle, high: node.high, right: node.right, slots: upper };
        let free = database.next_free;
        database.next_free += 1;
        database.operations.splits += 1;
        let empty = database.shape.initial(free);
        database.cache.make_room();
        // Room may take this leaf or the page above, which were just used; then the split is put off.
        if database.cache.node(leaf).is_none() || database.cache.node(parent).is_none() {
            database.next_free -= 1;
            database.operations.splits -= 1;
            return None;
        }
        database.cache.add(free, Some(empty));
        Some((middle, free, become_leaf, knows))
    });
    let Some((middle, free, become_leaf, knows)) = parts else { return Ok(()) };
    let mut newly = kernel.change(at, free, become_leaf, false) as u8;
    newly += kernel.change(at, leaf, Change::Cut { high: middle, right: free }, false) as u8;
    if knows {
        newly += kernel.change(at, parent, Change::Link { key: middle, child: free }, false) as u8;
    }
    *ios += f64::from(newly);
    Ok(())
}
