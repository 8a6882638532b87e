//! Pages that Linux 6.18 wrote, whole and damaged.

use std::{fs::File, path::Path};

use super::*;
use crate::event::flags;

const LAYOUT: &str = include_str!("../../tests/pages/linux-6.18.json");
const PAGES: &[u8] = include_bytes!("../../tests/pages/linux-6.18.pages");
const PAGE_BYTES: usize = 4096;

fn layout() -> Layout {
    serde_json::from_str(LAYOUT).expect("a layout")
}

fn fed(pages: &[u8]) -> Capture {
    let mut capture = Capture::new(Vec::new(), layout(), 0, true).expect("a capture");
    for page in pages.chunks(PAGE_BYTES) {
        capture.page[..page.len()].copy_from_slice(page);
        capture.take_page(page.len());
    }
    capture.finish().expect("an end");
    capture
}

/// How many I/Os of a kind have both times.
fn whole(columns: &Columns, flag: u16) -> usize {
    let times = columns.queue_ns.iter().zip(&columns.device_ns);
    let has = columns.flags.iter().map(|flags| *flags as u16 & flag != 0);
    times.zip(has).filter(|((queue, device), has)| *has && **queue >= 0 && **device > 0).count()
}

#[test]
fn recorded_pages_hold_the_ios_that_were_made() {
    // 24 writes of 8 KiB and 40 reads of 4 KiB around the page cache, a sync, 3 MB written back, and two more syncs.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/linux-6.18.pages");
    let ring = File::open(path).expect("recorded pages");
    let mut capture = Capture::new(vec![ring], layout(), 0, true).expect("a capture");
    capture.finish().expect("an end");
    let (columns, counts) = (capture.columns(), capture.counts());
    assert_eq!((counts.lost, counts.damaged_pages, counts.held), (0, 0, 0));
    let of_size = |flag: u16, bytes: i64| {
        columns
            .flags
            .iter()
            .zip(&columns.size_bytes)
            .filter(move |(flags, size)| **flags as u16 & flag != 0 && **size == bytes)
    };
    assert_eq!(of_size(flags::READ, 4096).count(), 40);
    assert!(of_size(flags::WRITE, 8192).count() >= 24);
    assert!(whole(&columns, flags::READ) >= 40 && whole(&columns, flags::WRITE) >= 24);
    let written: i64 =
        columns.size_bytes.iter().zip(&columns.flags).map(|(size, flags)| size * i64::from(flags >> 1 & 1)).sum();
    assert!(written >= 3_000_000 + 24 * 8192);
    assert!(columns.t_ns.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(capture.processes().iter().any(|name| name == "python"));
}

#[test]
fn ten_million_changed_bytes_do_no_harm() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        // Xorshift, of which any seed will do.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut changed = 0;
    while changed < 10_000_000 {
        let mut pages = PAGES.to_vec();
        // A few, so that most of a page is still understood, or very many.
        let count = if next() % 4 == 0 { 20_000 } else { 1 + next() as usize % 200 };
        for _ in 0..count {
            let place = next() as usize % pages.len();
            pages[place] = next() as u8;
        }
        pages.truncate(pages.len() - next() as usize % PAGE_BYTES);
        changed += count;
        let mut capture = fed(&pages);
        assert!(capture.columns().t_ns.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}

#[test]
fn events_wait_until_no_other_processor_can_have_earlier_ones() {
    let mut capture = Capture::new(Vec::new(), layout(), 0, true).expect("a capture");
    capture.page.copy_from_slice(&PAGES[..PAGE_BYTES]);
    capture.take_page(PAGE_BYTES);
    let last_ns = capture.events.last().expect("events").time_ns;
    let count = capture.events.len();
    capture.take(last_ns - 1, false);
    assert_eq!(capture.events.len(), 1);
    capture.take(last_ns, false);
    assert_eq!((capture.events.len(), capture.counts().events), (0, count as u64));
}
