//! Events joined into I/Os: merged, split, done in parts, handed back, flushed and lost.

use proptest::prelude::*;

use super::*;
use crate::event::{Asked, asked_of};

fn event(time_ns: u64, kind: EventKind, sector: u64, sectors: u32, rwbs: &str) -> Event {
    let asked = asked_of(rwbs.as_bytes()).expect("letters of an I/O");
    Event { time_ns, kind, device: 0, sector, sectors, asked, process: 0 }
}

fn by(process: u16, event: Event) -> Event {
    Event { process, ..event }
}

use EventKind::{Complete, Issue, Queue, Requeue};

/// All I/Os of some events, and the counts of the joiner.
fn joined(events: &[Event]) -> (Vec<Io>, Unjoined) {
    let mut joiner = Joiner::default();
    for event in events {
        joiner.take(event);
    }
    let mut found = Vec::new();
    joiner.ready(true, |io| found.push(io));
    assert!(joiner.slots.is_empty() && joiner.waiting.is_empty() && joiner.in_flight.is_empty());
    assert!(joiner.flushes.values().all(Vec::is_empty) && joiner.further.is_empty());
    (found, joiner.unjoined)
}

fn times(ios: &[Io]) -> Vec<(u64, i64, i64)> {
    ios.iter().map(|io| (io.t_ns, io.queue_ns, io.device_ns)).collect()
}

#[test]
fn an_io_has_the_time_in_the_queue_and_in_the_device_and_the_process_that_asked() {
    let (found, _) = joined(&[
        by(3, event(100, Queue, 8, 16, "RS")),
        by(9, event(130, Issue, 8, 16, "RS")),
        event(530, Complete, 8, 16, "RS"),
    ]);
    let flags = flags::READ | flags::SYNC;
    let expected = Io {
        t_ns: 100,
        queue_ns: 30,
        device_ns: 400,
        place_bytes: 4096,
        size_bytes: 8192,
        flags,
        device: 0,
        process: 3,
    };
    assert_eq!(found, [expected]);
}

#[test]
fn ios_leave_in_the_order_in_which_they_were_asked_for() {
    let mut joiner = Joiner::default();
    let mut found = Vec::new();
    for one in [
        event(1, Queue, 0, 8, "R"),
        event(2, Queue, 80, 8, "R"),
        event(3, Issue, 80, 8, "R"),
        event(4, Issue, 0, 8, "R"),
        event(5, Complete, 80, 8, "R"),
    ] {
        joiner.take(&one);
    }
    joiner.ready(false, |io| found.push(io));
    assert!(found.is_empty());
    joiner.take(&event(6, Complete, 0, 8, "R"));
    joiner.ready(false, |io| found.push(io));
    assert_eq!(times(&found), [(1, 3, 2), (2, 1, 2)]);
}

#[test]
fn a_merged_request_waited_as_long_as_its_first_bio() {
    let (found, unjoined) = joined(&[
        by(1, event(10, Queue, 8, 8, "W")),
        by(2, event(12, Queue, 0, 8, "W")),
        event(13, Queue, 16, 8, "W"),
        event(20, Issue, 0, 24, "W"),
        event(50, Complete, 0, 24, "W"),
    ]);
    assert_eq!(times(&found), [(10, 10, 30)]);
    assert_eq!((found[0].size_bytes, found[0].process, unjoined), (24 * 512, 1, Unjoined::default()));
}

#[test]
fn a_split_bio_becomes_several_ios_of_its_time() {
    let (found, _) = joined(&[
        event(10, Queue, 0, 24, "R"),
        event(11, Queue, 100, 8, "R"),
        event(12, Issue, 0, 16, "R"),
        event(13, Issue, 100, 8, "R"),
        event(15, Issue, 16, 8, "R"),
        event(20, Complete, 16, 8, "R"),
        event(21, Complete, 0, 16, "R"),
        event(22, Complete, 100, 8, "R"),
    ]);
    assert_eq!(times(&found), [(10, 5, 5), (10, 2, 9), (11, 2, 9)]);
}

#[test]
fn ios_of_one_place_end_in_the_order_in_which_they_were_issued() {
    let (found, _) = joined(&[
        event(1, Queue, 0, 8, "R"),
        event(2, Queue, 0, 8, "R"),
        event(3, Issue, 0, 8, "R"),
        event(5, Issue, 0, 8, "R"),
        event(7, Complete, 0, 8, "R"),
        event(11, Complete, 0, 8, "R"),
    ]);
    assert_eq!(times(&found), [(1, 2, 4), (2, 3, 6)]);
}

#[test]
fn a_request_that_completes_in_parts_is_done_with_the_last() {
    let (found, unjoined) = joined(&[
        event(1, Queue, 0, 32, "W"),
        event(2, Issue, 0, 32, "W"),
        event(5, Complete, 0, 8, "W"),
        event(6, Complete, 8, 16, "W"),
        event(9, Complete, 24, 8, "W"),
    ]);
    assert_eq!(times(&found), [(1, 1, 7)]);
    assert_eq!((found[0].size_bytes, unjoined.completions), (32 * 512, 0));
}

#[test]
fn time_until_a_request_is_issued_for_good_is_time_in_the_queue() {
    let (found, _) = joined(&[
        event(1, Queue, 0, 8, "R"),
        event(2, Issue, 0, 8, "R"),
        event(3, Requeue, 0, 8, "R"),
        event(9, Issue, 0, 8, "R"),
        event(10, Complete, 0, 8, "R"),
    ]);
    assert_eq!(times(&found), [(1, 8, 1)]);
}

#[test]
fn one_flush_of_the_device_serves_all_that_wait() {
    // A write with a flush before it, and a flush alone; both complete once more as themselves.
    let (found, unjoined) = joined(&[
        event(1, Queue, 64, 8, "FWS"),
        event(2, Queue, 0, 0, "FWS"),
        event(3, Issue, 0, 0, "FF"),
        event(7, Complete, 0, 0, "FF"),
        event(8, Complete, 0, 0, "WS"),
        event(9, Issue, 64, 8, "WS"),
        event(12, Complete, 64, 8, "WS"),
        event(13, Complete, 64, 0, "WS"),
    ]);
    assert_eq!(times(&found), [(1, 2, 4), (1, 8, 3)]);
    assert_eq!((found[0].flags, found[0].size_bytes, found[0].place_bytes), (flags::FLUSH, 0, 0));
    assert_eq!((found[1].flags, unjoined), (flags::WRITE | flags::SYNC, Unjoined::default()));
}

#[test]
fn a_device_without_a_cache_is_not_asked_to_flush() {
    let (found, _) =
        joined(&[event(1, Queue, 64, 8, "FW"), event(3, Issue, 64, 8, "W"), event(7, Complete, 64, 8, "W")]);
    assert_eq!(times(&found), [(1, 2, 4)]);
}

#[test]
fn requests_whose_bio_was_not_seen_have_no_time_in_the_queue() {
    let (found, unjoined) =
        joined(&[event(1, Complete, 8, 8, "R"), event(3, Issue, 64, 8, "W"), event(7, Complete, 64, 8, "W")]);
    assert_eq!((times(&found), unjoined.completions), (vec![(3, UNKNOWN_NS, 4)], 1));
}

#[test]
fn a_lost_completion_is_not_taken_from_the_next_io_of_its_place() {
    let mut joiner = Joiner::default();
    joiner.take(&event(1, Queue, 0, 8, "R"));
    joiner.take(&event(2, Issue, 0, 8, "R"));
    joiner.doubt();
    for one in [event(50, Queue, 0, 8, "R"), event(51, Issue, 0, 8, "R"), event(53, Complete, 0, 8, "R")] {
        joiner.take(&one);
    }
    let mut found = Vec::new();
    joiner.ready(false, |io| found.push(io));
    assert_eq!((times(&found), joiner.unjoined.unfinished), (vec![(1, 1, UNKNOWN_NS), (50, 1, 2)], 1));
}

#[test]
fn an_io_that_is_out_for_long_holds_back_the_others_for_a_while_alone() {
    let mut joiner = Joiner::default();
    let mut found = Vec::new();
    joiner.take(&event(1, Queue, 0, 8, "R"));
    joiner.take(&event(2, Issue, 0, 8, "R"));
    joiner.take(&event(3, Queue, 800, 8, "R")); // never issued
    for time_ns in [5, HOLD_NS + 5] {
        joiner.take(&event(time_ns, Queue, 80, 8, "R"));
        joiner.take(&event(time_ns + 1, Issue, 80, 8, "R"));
        joiner.take(&event(time_ns + 2, Complete, 80, 8, "R"));
        joiner.ready(false, |io| found.push(io));
    }
    assert_eq!(times(&found), [(1, 1, UNKNOWN_NS), (5, 1, 1), (HOLD_NS + 5, 1, 1)]);
    joiner.take(&event(HOLD_NS + 20, Complete, 0, 8, "R"));
    assert_eq!(joiner.unjoined, Unjoined { completions: 1, unfinished: 1 });
    assert!(joiner.waiting.is_empty() && joiner.held() == 0);
}

fn any_event() -> impl Strategy<Value = Event> {
    let kinds = prop::sample::select(vec![Queue, Issue, Requeue, Complete]);
    let asked = prop::sample::select(vec!["R", "W", "FW", "FF", "WF", "D"]);
    let place = (prop::sample::select(vec![0, 4, 8, 12, 16, u64::MAX]), 0u32..12);
    (0u64..20, kinds, asked, place, 0u16..2).prop_map(|(gap_ns, kind, letters, (sector, sectors), device)| {
        let asked = asked_of(letters.as_bytes()).unwrap_or(Asked { flags: 0, flushes_first: false });
        Event { time_ns: gap_ns, kind, device, sector, sectors, asked, process: 0 }
    })
}

proptest! {
    #[test]
    fn whatever_comes_ios_leave_in_order_and_nothing_stays(mut events in prop::collection::vec(any_event(), 0..200)) {
        let mut now_ns = 0;
        let mut completed = 0;
        for one in &mut events {
            now_ns += one.time_ns;
            one.time_ns = now_ns;
        }
        let mut joiner = Joiner::default();
        let mut found: Vec<Io> = Vec::new();
        for (number, one) in events.iter().enumerate() {
            completed += usize::from(joiner.take(one).is_some());
            if number % 50 == 49 {
                joiner.doubt();
                joiner.ready(false, |io| found.push(io));
            }
        }
        joiner.ready(true, |io| found.push(io));
        prop_assert!(found.windows(2).all(|pair| pair[0].t_ns <= pair[1].t_ns));
        prop_assert!(found.len() >= completed);
        prop_assert!(joiner.slots.is_empty() && joiner.waiting.is_empty() && joiner.in_flight.is_empty());
        prop_assert!(joiner.further.is_empty());
    }
}
