//! The contract of a queue, and volumes in files.

use std::{
    fs::{self, File, OpenOptions},
    path::PathBuf,
};

use super::*;

#[test]
fn completions_come_in_due_order() {
    let file = data(16);
    let mut queue = device(CLEAN, &[file]);
    let ios: Vec<Request> =
        (0..8).map(|tag| Request { tag, buffer: tag, ..request(&file, Op::Read, 0, u64::from(tag), 8192) }).collect();
    queue.submit(&ios).unwrap();
    let mut completions = Vec::new();
    queue.wait(8, 40_000, &mut completions).unwrap();
    assert_eq!((completions.len(), queue.now_ns()), (0, 40_000));
    queue.wait(1, u64::MAX, &mut completions).unwrap();
    assert_eq!((completions.len(), queue.now_ns()), (1, completions[0].at_ns));
    queue.wait(7, u64::MAX, &mut completions).unwrap();
    assert_eq!(completions.len(), 8);
    assert!(completions.is_sorted_by_key(|completion| completion.at_ns));
    assert!(completions.iter().all(|completion| (50_000..500_000).contains(&completion.at_ns)));
    let now_ns = queue.now_ns();
    queue.wait(1, u64::MAX, &mut completions).unwrap();
    assert_eq!((completions.len(), queue.now_ns()), (8, now_ns));
}

#[test]
fn the_wall_clock_waits_for_long_ios_only() {
    let file = data(16);
    let options = FaultyOptions { long_io: 1.0, long_io_delay_ns: 20_000_000, ..CLEAN };
    let mut queue =
        FaultyQueue::new(options, vec![file], Memory::new(&[file]), FaultyClock::wall(Instant::now()), 4, 4, PAGE)
            .unwrap();
    let before_ns = queue.now_ns();
    let at_ns = finish(&mut queue, request(&file, Op::Read, 0, 0, 8192)).at_ns;
    assert!(at_ns - before_ns >= 20_000_000 && at_ns <= queue.now_ns());
}

#[test]
#[should_panic(expected = "frame 0 belongs to an outstanding I/O")]
fn frames_of_outstanding_ios_are_out_of_reach() {
    let file = data(16);
    let mut queue = device(CLEAN, &[file]);
    queue.submit(&[request(&file, Op::Read, 0, 0, 8192)]).unwrap();
    queue.frame(0);
}

#[test]
#[should_panic(expected = "tag 0 belongs to an outstanding request")]
fn tags_are_used_once() {
    let file = data(16);
    let mut queue = device(CLEAN, &[file]);
    let io = request(&file, Op::Read, 0, 0, 8192);
    queue.submit(&[io, Request { buffer: 1, ..io }]).unwrap();
}

#[test]
#[should_panic(expected = "an outstanding request touches what is cut off")]
fn what_an_io_touches_is_not_cut_off() {
    let file = data(4);
    let mut queue = device(CLEAN, &[file]);
    queue.submit(&[request(&file, Op::Read, 0, 1, 8192)]).unwrap();
    queue.resize(0, 2 * u64::from(PAGE)).unwrap();
    queue.resize(0, u64::from(PAGE)).unwrap();
}

#[test]
fn a_flush_touches_nothing() {
    let file = data(4);
    let mut queue = device(CLEAN, &[file]);
    queue.submit(&[request(&file, Op::Flush, 0, 3, 0)]).unwrap();
    assert_eq!(queue.resize(0, 2 * u64::from(PAGE)), Ok(()));
}

#[test]
fn ios_that_are_no_pages_of_the_volume_are_invalid() {
    let file = FaultyFile { base_bytes: 8192, ..data(4) };
    let mut queue = device(FaultyOptions { long_io: 1.0, ..CLEAN }, &[file]);
    let io = request(&file, Op::Write, 0, 0, 8192);
    for (offset_bytes, length_bytes) in [(8192, 100), (8192, 0), (8704, 8192), (0, 8192), (32768, 16384)] {
        let result = finish(&mut queue, Request { offset_bytes, length_bytes, ..io }).result;
        assert_eq!(result, -libc::EINVAL, "{offset_bytes} {length_bytes}");
    }
    assert_eq!(queue.injected().total(), 0);
    assert_eq!(finish(&mut queue, io).result, 8192);
    assert_eq!(queue.resize(0, 8192 + 100), Err(-libc::EINVAL));
    assert_eq!(queue.resize(0, 0), Err(-libc::EINVAL));
}

#[test]
fn descriptions_that_make_no_sense_are_refused() {
    let refused = |file: FaultyFile, frame_bytes| {
        let medium = Memory::new(&[]);
        match FaultyQueue::new(CLEAN, vec![file], medium, FaultyClock::virtual_time(), 1, 1, frame_bytes) {
            Err(LoadError::InvalidValue { field, .. }) => field,
            _ => "accepted",
        }
    };
    assert_eq!(refused(FaultyFile { page_bytes: 1000, ..data(1) }, PAGE), "page_bytes");
    assert_eq!(refused(FaultyFile { page_bytes: 65536, ..data(8) }, PAGE), "page_bytes");
    assert_eq!(refused(FaultyFile { size_bytes: 100, ..data(1) }, PAGE), "size_bytes");
    assert_eq!(refused(data(1), 4096), "frame_bytes");
    assert_eq!(refused(data(1), PAGE), "accepted");
}

/// A file of the tests, gone with this.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("assay-faulty-{}-{name}", std::process::id())))
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn on_files(options: FaultyOptions, files: &[FaultyFile], opened: Vec<File>) -> FaultyQueue<FileMedium> {
    let medium = FileMedium::new(files, opened).unwrap();
    FaultyQueue::new(options, files.to_vec(), medium, FaultyClock::wall(Instant::now()), 4, FRAMES, PAGE).unwrap()
}

#[test]
fn a_volume_in_a_file() {
    let path = Scratch::new("own");
    let file = FaultyFile { scattered: true, ..data(8) };
    path.open().set_len(100_000).unwrap();
    let mut queue = on_files(CLEAN, &[file], vec![path.open()]);
    let bytes = content(&file, 2, 3, 1);
    assert_eq!(write(&mut queue, 0, 2, &bytes), 3 * PAGE as i32);
    assert_eq!(flush(&mut queue, 0), 0);
    assert_eq!(read(&mut queue, 0, 2, 3), (3 * PAGE as i32, bytes.clone()));
    assert_eq!(fs::read(&path.0).unwrap()[2 * PAGE as usize..5 * PAGE as usize], bytes);

    queue.options = FaultyOptions { lost: 1.0, ..CLEAN };
    write(&mut queue, 0, 2, &content(&file, 2, 1, 2));
    assert_eq!(read(&mut queue, 0, 2, 1).1, content(&file, 2, 1, 1));
    assert_observable(&queue, &[(Fault::Lost, 1)]);

    path.open().set_len(200_000).unwrap();
    fs::write(&path.0, vec![1; 200_000]).unwrap();
    assert_eq!(queue.resize(0, 12 * u64::from(PAGE)), Ok(()));
    assert_eq!(fs::metadata(&path.0).unwrap().len(), 12 * u64::from(PAGE));
    assert_eq!(read(&mut queue, 0, 8, 4).1, vec![0; 4 * PAGE as usize]);

    // What the system says is passed on: there is no file behind these pages any more.
    path.open().set_len(0).unwrap();
    assert_eq!(read(&mut queue, 0, 0, 1).0, -libc::EIO);
}

#[test]
fn a_file_that_cannot_be_written_says_so() {
    let path = Scratch::new("read-only");
    path.open().set_len(8 * u64::from(PAGE)).unwrap();
    let mut queue = on_files(CLEAN, &[data(8)], vec![File::open(&path.0).unwrap()]);
    assert_eq!(write(&mut queue, 0, 0, &content(&data(8), 0, 1, 1)), -libc::EBADF);
    assert_eq!(read(&mut queue, 0, 0, 1).0, PAGE as i32);
}

#[test]
fn two_volumes_share_a_file() {
    let path = Scratch::new("shared");
    let files = [data(4), FaultyFile { base_bytes: 4 * u64::from(PAGE), ..log(16) }];
    path.open().set_len(4 * u64::from(PAGE) + 16 * 512).unwrap();
    let options = FaultyOptions { misdirected_write: 1.0, ..CLEAN };
    let mut queue = on_files(options, &files, vec![path.open(), path.open()]);
    for generation in 1..=20 {
        write(&mut queue, 0, generation % 4, &content(&files[0], generation % 4, 1, generation));
        write(&mut queue, 1, generation % 16, &content(&files[1], generation % 16, 1, generation));
    }
    assert!(queue.injections().len() > 30);
    // Misdirected bytes stay in their volume.
    for (volume, file) in files.iter().enumerate() {
        let bytes = &fs::read(&path.0).unwrap()[file.base_bytes as usize..][..file.size_bytes as usize];
        let known: Vec<Vec<u8>> = (1..=20)
            .map(|generation| content(file, generation % file.pages(), 1, generation))
            .chain([vec![0; file.page_bytes as usize]])
            .collect();
        assert!(bytes.chunks(file.page_bytes as usize).all(|page| known.iter().any(|known| known == page)), "{volume}");
    }
    assert_eq!(queue.resize(0, 8 * u64::from(PAGE)), Err(-libc::EINVAL));
}
