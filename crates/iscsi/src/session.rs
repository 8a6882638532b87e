//! A session after its login: commands come, data are asked for, I/Os begin, answers leave. No socket is touched here.

mod incoming;
mod texts;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ops::Range,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use assay_disk_server::{Budget, Done, End, Taken};

use crate::{
    active::Active,
    parameters::Parameters,
    pdu::{FINAL, Header, NO_TAG, READ, WRITE, ask, reject, tell},
    scsi::{Task, reservations::Nexus, sense::Sense, status, unit},
    shared::{Shared, Standing},
};

/// Commands that an initiator may have under way.
const WINDOW: u32 = 128;
/// Memory that commands of one session may hold; the initiator is told that its queue is full.
const SESSION_MOST_BYTES: u64 = 128 << 20;
/// Time in which an initiator that is asked to log out does so.
pub(crate) const LEAVE_MOST: Duration = Duration::from_secs(10);

/// Bytes on their way to an initiator, and the memory that they hold until all have left.
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    pub(crate) _taken: Option<Taken>,
}

/// A unit that leaves: its header, and where its data are.
pub(crate) struct Frame {
    pub(crate) header: Header,
    pub(crate) data: Option<(Rc<Held>, Range<usize>)>,
}

impl Frame {
    /// A unit with all of these bytes.
    pub(crate) fn new(header: Header, bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        let data = (!bytes.is_empty()).then(|| (Rc::new(Held { bytes, _taken: None }), range));
        Self { header: header.with_data_bytes(data.as_ref().map_or(0, |(_, range)| range.len())), data }
    }
}

/// A request that ends other tasks, and the tags of the tasks that it waits for.
struct Managing {
    tag: u32,
    waits_for: HashSet<u32>,
}

/// A session.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) nexus: Nexus,
    /// Number of the disk; none for discovery.
    pub(crate) disk: Option<usize>,
    pub(crate) parameters: Parameters,
    /// Its entry in the list of sessions, once it has one.
    pub(crate) standing: Option<Arc<Standing>>,
    /// Where this session is answered, as SendTargets says it.
    pub(crate) told_at: String,
    pub(crate) command_number: u32,
    pub(crate) status_number: u32,
    active: HashMap<u32, Active>,
    managing: Vec<Managing>,
    /// Memory that commands of this session hold.
    budget: Arc<Budget>,
    pub(crate) out: VecDeque<Frame>,
    pub(crate) out_bytes: usize,
    /// Texts that are too long for one unit.
    texts: Vec<u8>,
    next_tag: u32,
    /// Once all that waits has left, the connection ends.
    pub(crate) is_over: bool,
    pub(crate) ends: tokio::sync::mpsc::UnboundedSender<(u32, Done)>,
}

/// Where the data of a unit go.
pub(crate) enum Lent {
    /// Into these data of the command, from here on.
    Whole(Vec<u8>, usize),
    /// The command takes the first ones, by this count; the rest is more than it asks for.
    Part(usize),
    Nothing,
}

/// The initiator broke the protocol in a way that only the end of the connection answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Session {
    pub(crate) fn new(
        shared: Arc<Shared>,
        opened: crate::login::Opened,
        told_at: String,
        command_number: u32,
        status_number: u32,
        ends: tokio::sync::mpsc::UnboundedSender<(u32, Done)>,
    ) -> Self {
        Self {
            nexus: Nexus { initiator: opened.initiator, session: opened.session },
            disk: opened.disk,
            parameters: opened.parameters,
            standing: None,
            told_at,
            command_number,
            status_number,
            active: HashMap::new(),
            managing: Vec::new(),
            budget: Budget::part(&shared.budget, SESSION_MOST_BYTES),
            shared,
            out: VecDeque::new(),
            out_bytes: 0,
            texts: Vec::new(),
            next_tag: 0,
            is_over: false,
            ends,
        }
    }

    /// Numbers that every answer carries; those with a status take one.
    fn numbered(&mut self, header: Header, takes: bool) -> Header {
        let window = WINDOW.saturating_sub(self.active.len() as u32);
        let header = header
            .with(24, self.status_number)
            .with(28, self.command_number)
            .with(32, self.command_number.wrapping_add(window).wrapping_sub(1));
        self.status_number = self.status_number.wrapping_add(u32::from(takes));
        header
    }

    fn send(&mut self, header: Header, data: Option<(Rc<Held>, Range<usize>)>) {
        let bytes = data.as_ref().map_or(0, |(_, range)| range.len());
        self.out_bytes += bytes + crate::pdu::HEADER_BYTES;
        self.out.push_back(Frame { header: header.with_data_bytes(bytes), data });
    }

    fn send_bytes(&mut self, header: Header, bytes: Vec<u8>) {
        self.out_bytes += bytes.len() + crate::pdu::HEADER_BYTES;
        self.out.push_back(Frame::new(header, bytes));
    }

    /// Whether a unit is next in the order of commands; one that is not is passed over.
    fn is_next(&mut self, header: &Header) -> bool {
        let number = header.u32(24);
        if header.is_immediate() {
            return true;
        }
        if number != self.command_number || self.active.len() >= WINDOW as usize {
            return false;
        }
        self.command_number = self.command_number.wrapping_add(1);
        true
    }

    /// Takes a unit that is no data of a write.
    ///
    /// # Errors
    /// Only the end of the connection answers it.
    pub(crate) fn take(&mut self, header: &Header, data: Vec<u8>) -> Result<(), Broken> {
        match header.opcode() {
            ask::COMMAND | ask::MANAGE if self.disk.is_none() => self.refuse(header, reject::PROTOCOL_ERROR),
            // A later session of this initiator must hear what is for it.
            ask::COMMAND if self.standing.as_ref().is_some_and(|standing| standing.is_over()) => return Err(Broken),
            ask::COMMAND => {
                if self.is_next(header) {
                    self.command(header, data)?;
                }
            }
            ask::NOP => {
                if self.is_next(header) && header.task_tag() != NO_TAG {
                    let answer = Header::new(tell::NOP, FINAL).with(16, header.task_tag()).with(20, NO_TAG);
                    let answer = self.numbered(answer.with_bytes(8, &header.lun()), true);
                    let mut data = data;
                    data.truncate(self.parameters.sent_most_bytes);
                    self.send_bytes(answer, data);
                }
            }
            ask::MANAGE => {
                if self.is_next(header) {
                    self.manage(header);
                }
            }
            ask::TEXT => {
                if self.is_next(header) {
                    self.text(header, &data);
                }
            }
            ask::LOGOUT => {
                if self.is_next(header) {
                    // Connections are not recovered: the third reason asks for it.
                    let response = if header.flags() & 0x7f == 2 { 2 } else { 0 };
                    let answer = Header::new(tell::LOGOUT, FINAL).with_byte(2, response).with(16, header.task_tag());
                    let answer = self.numbered(answer, true);
                    self.send(answer, None);
                    self.is_over = response == 0;
                }
            }
            ask::LOGIN => return Err(Broken),
            _ => self.refuse(header, reject::NOT_SUPPORTED),
        }
        Ok(())
    }

    fn refuse(&mut self, header: &Header, reason: u8) {
        let answer = self.numbered(Header::new(tell::REJECT, FINAL).with_byte(2, reason), true);
        self.send_bytes(answer, header.0.to_vec());
    }

    /// Begins a command.
    fn command(&mut self, header: &Header, mut data: Vec<u8>) -> Result<(), Broken> {
        let tag = header.task_tag();
        if self.active.contains_key(&tag) || tag == NO_TAG {
            self.refuse(header, reject::PROTOCOL_ERROR);
            return Ok(());
        }
        let cdb: [u8; 16] = header.array(32);
        let disk = self.disk.expect("commands go to a disk");
        let shared = Arc::clone(&self.shared);
        let is_write = header.flags() & WRITE != 0;
        let expected_bytes = header.u32(20);
        let task = if header.lun() == [0; 8] { shared.units[disk].task(&self.nexus, &cdb) } else { unit::absent(&cdb) };
        let wanted_bytes = task.out_bytes();
        let given_bytes = if is_write { (expected_bytes as usize).min(wanted_bytes) } else { 0 };
        let held_bytes = given_bytes as u64 + crate::execution::read_bytes(&task);
        let taken = self.budget.take(held_bytes);
        let is_full = taken.is_none() && held_bytes > 0;
        let limits = &self.parameters;
        if data.len() > limits.first_burst_bytes || (!data.is_empty() && !limits.immediate_data) {
            return Err(Broken);
        }
        let may_follow = is_write && !header.is_final();
        let unsolicited_bytes = if may_follow {
            limits.first_burst_bytes.min(expected_bytes as usize).saturating_sub(data.len())
        } else {
            0
        };
        if may_follow && limits.initial_ready {
            return Err(Broken);
        }
        let come_bytes = data.len();
        data.resize(given_bytes, 0);
        let active = Active {
            task: if is_full { Task::Done } else { task },
            cdb,
            lun: header.lun(),
            expected_bytes,
            is_read: header.flags() & READ != 0,
            data,
            come_bytes,
            unsolicited_bytes,
            asked_bytes: come_bytes + unsolicited_bytes,
            asked: VecDeque::new(),
            ready_number: 0,
            data_number: 0,
            is_with_store: false,
            is_aborted: false,
            taken,
            copying: None,
        };
        self.active.insert(tag, active);
        if is_full {
            self.respond(tag, status::TASK_SET_FULL, None, 0);
            return Ok(());
        }
        self.go_on(tag);
        Ok(())
    }

    /// Asks for data that are missing, or begins the I/Os once there are all.
    fn go_on(&mut self, tag: u32) {
        let Some(active) = self.active.get_mut(&tag) else { return };
        if active.is_aborted || active.is_with_store {
            return;
        }
        if active.come_bytes >= active.data.len() && active.unsolicited_bytes == 0 {
            return self.execute(tag);
        }
        let mut asked = Vec::new();
        while active.unsolicited_bytes == 0
            && active.asked_bytes < active.data.len()
            && active.asked.len() < self.parameters.ready_most as usize
        {
            let bytes = (active.data.len() - active.asked_bytes).min(self.parameters.burst_bytes);
            let header = Header::new(tell::READY, FINAL)
                .with_bytes(8, &active.lun)
                .with(16, tag)
                .with(36, active.ready_number)
                .with(40, active.asked_bytes as u32)
                .with(44, bytes as u32);
            active.ready_number += 1;
            active.asked_bytes += bytes;
            active.asked.push_back(active.asked_bytes);
            asked.push(header);
        }
        for header in asked {
            self.next_tag = (self.next_tag + 1) % NO_TAG;
            let header = self.numbered(header.with(20, self.next_tag), false);
            self.send(header, None);
        }
    }

    /// Begins what the command asks for; the end comes by `ended`.
    fn execute(&mut self, tag: u32) {
        let (shared, nexus) = (Arc::clone(&self.shared), self.nexus.clone());
        let (disk, end) = (self.disk.expect("commands go to a disk"), self.end_of(tag)());
        let active = self.active.get_mut(&tag).expect("it is under way");
        active.is_with_store = true;
        match crate::execution::begin(&shared, disk, &nexus, active, end) {
            None => {}
            Some(crate::execution::Ended { status, sense, data, moved_bytes }) => match data {
                Some(bytes) => self.answer(tag, bytes),
                None => self.respond(tag, status, sense, moved_bytes),
            },
        }
    }

    /// Makes what takes the end of I/Os to this session.
    fn end_of(&self, tag: u32) -> impl FnOnce() -> End + use<> {
        let ends = self.ends.clone();
        move || {
            Box::new(move |done| {
                let _ = ends.send((tag, done));
            })
        }
    }

    /// The store has answered a command.
    pub(crate) fn ended(&mut self, tag: u32, done: Done) {
        let end = self.end_of(tag);
        let Some(active) = self.active.get_mut(&tag) else { return };
        if active.is_aborted {
            if let Some(copying) = &active.copying {
                copying.give_up(&self.shared, &self.nexus);
            }
            self.forget(tag);
            return;
        }
        let Some(done) = crate::copying::go_on(&self.shared, &self.nexus, &mut active.copying, done, end) else {
            return;
        };
        let crate::execution::Ended { status, sense, data, moved_bytes } = crate::execution::end(active, done);
        match data {
            Some(bytes) => self.answer(tag, bytes),
            None => self.respond(tag, status, sense, moved_bytes),
        }
    }

    /// Ends a task without an answer to it.
    fn forget(&mut self, tag: u32) -> Option<Active> {
        let active = self.active.remove(&tag);
        for managing in &mut self.managing {
            managing.waits_for.remove(&tag);
        }
        let (over, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.managing).into_iter().partition(|managing| managing.waits_for.is_empty());
        self.managing = waiting;
        over.iter().for_each(|managing| self.managed(managing.tag, 0));
        active
    }

    /// Answers a command with bytes and a good status.
    fn answer(&mut self, tag: u32, bytes: Vec<u8>) {
        let Some(active) = self.active.get(&tag) else { return };
        let taken_bytes = if active.is_read { (active.expected_bytes as usize).min(bytes.len()) } else { 0 };
        if taken_bytes == 0 {
            return self.respond(tag, status::GOOD, None, bytes.len() as u64);
        }
        let (lun, expected_bytes) = (active.lun, u64::from(active.expected_bytes));
        let (flags, residual) = residual(expected_bytes, bytes.len() as u64);
        let taken = self.forget(tag).and_then(|active| active.taken);
        let held = Rc::new(Held { bytes, _taken: taken });
        let (most, burst) = (self.parameters.sent_most_bytes, self.parameters.burst_bytes);
        let (mut at, mut number) = (0, 0);
        while at < taken_bytes {
            let left_of_burst = burst - at % burst;
            let end = taken_bytes.min(at + most.min(left_of_burst));
            let is_last = end == taken_bytes;
            let mut header = Header::new(tell::DATA, if is_last || end % burst == 0 { FINAL } else { 0 })
                .with_bytes(8, &lun)
                .with(16, tag)
                .with(20, NO_TAG)
                .with(36, number)
                .with(40, at as u32);
            if is_last {
                // The status comes with the last data.
                header = header.with_byte(1, FINAL | 0x01 | flags).with(44, residual);
                header = self.numbered(header, true);
            } else {
                header = self.numbered(header, false).with(24, 0);
            }
            self.send(header, Some((Rc::clone(&held), at..end)));
            (at, number) = (end, number + 1);
        }
    }

    /// Answers a command with a status; `moved_bytes` is the length of the data that the command itself names.
    fn respond(&mut self, tag: u32, status: u8, sense: Option<Sense>, moved_bytes: u64) {
        let Some(active) = self.active.get(&tag) else { return };
        let (flags, residual) = residual(u64::from(active.expected_bytes), moved_bytes);
        self.forget(tag);
        let header = Header::new(tell::RESPONSE, FINAL | flags).with_byte(3, status).with(16, tag).with(44, residual);
        let header = self.numbered(header, true);
        let data = sense.map_or_else(Vec::new, |sense| {
            let bytes = sense.bytes();
            let mut data = (bytes.len() as u16).to_be_bytes().to_vec();
            data.extend(bytes);
            data
        });
        self.send_bytes(header, data);
    }

    /// Ends tasks (RFC 7143, 11.5).
    fn manage(&mut self, header: &Header) {
        let (tag, function) = (header.task_tag(), header.flags() & 0x7f);
        let own_unit = header.lun() == [0; 8];
        let tags: Vec<u32> = match function {
            1 => {
                let referred = header.u32(20);
                if !self.active.contains_key(&referred) {
                    // It has ended, or never was.
                    return self.managed(tag, 1);
                }
                vec![referred]
            }
            2 | 4 | 5 if !own_unit => return self.managed(tag, 2),
            2 | 4 => self.active.keys().copied().collect(),
            5..=7 => {
                self.shared.units[self.disk.expect("a disk")].reset();
                self.active.keys().copied().collect()
            }
            8 => return self.managed(tag, 4),
            _ => return self.managed(tag, 5),
        };
        let mut waits_for = HashSet::new();
        for one in tags {
            let active = self.active.get_mut(&one).expect("it is under way");
            active.is_aborted = true;
            // What the store has begun it ends; only then may the initiator hear that nothing more happens.
            if active.is_with_store {
                waits_for.insert(one);
            } else {
                self.active.remove(&one);
            }
        }
        if waits_for.is_empty() {
            return self.managed(tag, 0);
        }
        self.managing.push(Managing { tag, waits_for });
    }

    fn managed(&mut self, tag: u32, response: u8) {
        let header = Header::new(tell::MANAGED, FINAL).with_byte(2, response).with(16, tag);
        let header = self.numbered(header, true);
        self.send(header, None);
    }

    /// Asks the initiator to log out and in again: the group has another portal for it (RFC 7143, 11.9.1).
    pub(crate) fn ask_to_leave(&mut self) {
        let header = Header::new(tell::ASYNC, FINAL).with_byte(36, 1).with_u16(42, LEAVE_MOST.as_secs() as u16);
        let header = self.numbered(header, true);
        self.send(header, None);
    }
}

/// Flag and count of bytes that were too many for the initiator, or too few.
fn residual(expected_bytes: u64, moved_bytes: u64) -> (u8, u32) {
    match expected_bytes.cmp(&moved_bytes) {
        std::cmp::Ordering::Equal => (0, 0),
        std::cmp::Ordering::Greater => (0x02, (expected_bytes - moved_bytes) as u32),
        std::cmp::Ordering::Less => (0x04, (moved_bytes - expected_bytes).min(u64::from(u32::MAX)) as u32),
    }
}
