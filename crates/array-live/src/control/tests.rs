//! What those who ask may send.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use super::*;

/// A socket whose commands are all answered with the same.
struct Bench {
    at: PathBuf,
    inbox: Arc<Inbox>,
}

impl Bench {
    fn new(name: &str) -> Self {
        let at = std::env::temp_dir().join(format!("assay-control-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&at);
        let inbox = Arc::new(Inbox::default());
        listen(&Folder::at(&at).unwrap(), Arc::clone(&inbox)).unwrap();
        let heard = Arc::clone(&inbox);
        thread::spawn(move || {
            let mut messages = Vec::new();
            loop {
                heard.take(Duration::from_secs(1), &mut messages);
                for message in messages.drain(..) {
                    match message {
                        Message::Command(command, answer) => drop(answer.send(Ok(json!(format!("{command:?}"))))),
                        Message::Stop => return,
                        _ => {}
                    }
                }
            }
        });
        Self { at, inbox }
    }

    fn connect(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(self.at.join(SOCKET)).unwrap())
    }

    fn ask(&self, line: &[u8]) -> Value {
        let mut stream = self.connect();
        // One that was refused early is not read to its end.
        let _ = stream.get_mut().write_all(line);
        answer_of(&mut stream)
    }

    fn is_heard(&self) -> bool {
        self.ask(b"{\"command\": \"status\"}\n").get("done").is_some()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.inbox.put(Message::Stop);
        let _ = std::fs::remove_dir_all(&self.at);
    }
}

fn answer_of(stream: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn what_is_no_command_is_refused_in_one_line() {
    let bench = Bench::new("refused");
    let deep = [vec![b'['; 100_000], vec![b'\n']].concat();
    let lines: [&[u8]; 10] = [
        b"\n",
        b"[]\n",
        b"null\n",
        b"{\n",
        b"{\"command\": 5}\n",
        b"{\"command\": \"status\", \"more\": 1}\n",
        b"{\"command\": \"pull\", \"disk\": [1]}\n",
        b"{\"command\": \"fill\", \"percent\": -1}\n",
        b"\xff\xfe\n",
        &deep,
    ];
    for line in lines {
        let refused = bench.ask(line)["refused"].as_str().unwrap().to_owned();
        assert!(refused.starts_with("not a command: "), "{refused}");
    }
    assert!(bench.is_heard());
}

/// A line without an end took all the memory there is.
#[test]
fn a_line_without_an_end_is_refused_once_it_is_too_long() {
    let bench = Bench::new("long");
    let refused = bench.ask(&vec![b' '; LINE_MOST_BYTES as usize + 1]);
    assert!(refused["refused"].as_str().unwrap().contains("more than 4194304 bytes"));
    assert!(bench.is_heard());
}

#[test]
fn one_who_sends_half_a_line_holds_up_nobody_and_is_refused_in_the_end() {
    let bench = Bench::new("half");
    let mut half = bench.connect();
    half.get_mut().write_all(b"{\"command\"").unwrap();
    assert!(bench.is_heard());
    assert_eq!(answer_of(&mut half), json!({"refused": "not a command: its line does not end"}));
    assert!(bench.is_heard());
}

#[test]
fn more_than_a_bound_are_told_to_come_later_and_those_before_them_keep_their_places() {
    let bench = Bench::new("many");
    let mut before: Vec<_> = (0..ASKING_MOST).map(|_| bench.connect()).collect();
    assert!(bench.ask(b"{\"command\": \"status\"}\n")["refused"].as_str().unwrap().contains("others ask"));
    // One who says nothing yet may do so later.
    before[7].get_mut().write_all(b"{\"command\": \"status\"}\n").unwrap();
    assert!(answer_of(&mut before[7]).get("done").is_some());
    before.truncate(1);
    while !bench.is_heard() {
        thread::yield_now();
    }
}
