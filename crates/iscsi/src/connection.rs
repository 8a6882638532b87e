//! A connection: units are read from a socket and written to it; the session between them touches none.

use std::{cell::RefCell, io::IoSlice, rc::Rc, sync::Arc};

use assay_disk_server::{ANSWERS_AT_ONCE, Done, GREETING_MOST, READ_BUFFER_BYTES, TAKE_MOST, broken, write_all};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, mpsc},
};

use crate::{
    login::{Login, Opened, status},
    parameters::RECEIVED_MOST_BYTES,
    pdu::{HEADER_BYTES, Header, ask, filling},
    portals::Portal,
    session::{Frame, LEAVE_MOST, Lent, Session},
    shared::{Shared, Standing},
};

/// Answers that may wait for a slow reader before no more of its units are read.
const WAITING_MOST_BYTES: usize = 16 << 20;

/// Why a connection ended: the initiator closed it, was idle, or broke the protocol.
type Ended = std::io::Result<()>;

/// Reads units.
struct Input<R> {
    from: R,
    header_digest: bool,
    data_digest: bool,
}

impl<R: AsyncRead + Unpin> Input<R> {
    async fn header(&mut self) -> std::io::Result<Header> {
        let mut bytes = [0; HEADER_BYTES];
        self.from.read_exact(&mut bytes).await?;
        let header = Header(bytes);
        let mut more = Vec::new();
        if header.more_bytes() > 0 {
            more.resize(header.more_bytes(), 0);
            self.from.read_exact(&mut more).await?;
        }
        if self.header_digest {
            self.check(crc32c::crc32c_append(crc32c::crc32c(&bytes), &more)).await?;
        }
        if header.data_bytes() > RECEIVED_MOST_BYTES {
            return Err(broken("a unit is longer than was agreed"));
        }
        Ok(header)
    }

    async fn check(&mut self, sum: u32) -> std::io::Result<()> {
        // The one field that goes with its lowest byte first (RFC 7143, 13.1).
        if self.from.read_u32_le().await? == sum { Ok(()) } else { Err(broken("a digest is wrong")) }
    }

    /// Reads the data of a unit into a place that is as long.
    async fn data(&mut self, place: &mut [u8]) -> std::io::Result<()> {
        self.from.read_exact(place).await?;
        let mut rest = [0; 3];
        let rest = &mut rest[..filling(place.len())];
        self.from.read_exact(rest).await?;
        if self.data_digest && !place.is_empty() {
            self.check(crc32c::crc32c_append(crc32c::crc32c(place), rest)).await?;
        }
        Ok(())
    }

    async fn bytes(&mut self, header: &Header) -> std::io::Result<Vec<u8>> {
        let mut data = vec![0; header.data_bytes()];
        self.data(&mut data).await?;
        Ok(data)
    }
}

/// Writes frames, several with one system call.
async fn write(to: &mut (impl AsyncWrite + Unpin), frames: &[Frame], digests: (bool, bool)) -> std::io::Result<()> {
    const ZEROES: [u8; 3] = [0; 3];
    let sums: Vec<([u8; 4], [u8; 4])> = frames
        .iter()
        .map(|frame| {
            let header = if digests.0 { crc32c::crc32c(&frame.header.0) } else { 0 };
            let data = frame.data.as_ref().filter(|_| digests.1).map_or(0, |(held, range)| {
                let sum = crc32c::crc32c(&held.bytes[range.clone()]);
                crc32c::crc32c_append(sum, &ZEROES[..filling(range.len())])
            });
            (header.to_le_bytes(), data.to_le_bytes())
        })
        .collect();
    let mut slices = Vec::with_capacity(frames.len() * 5);
    for (frame, (header, data)) in frames.iter().zip(&sums) {
        slices.push(IoSlice::new(&frame.header.0));
        if digests.0 {
            slices.push(IoSlice::new(header));
        }
        if let Some((held, range)) = &frame.data {
            slices.push(IoSlice::new(&held.bytes[range.clone()]));
            slices.push(IoSlice::new(&ZEROES[..filling(range.len())]));
            if digests.1 {
                slices.push(IoSlice::new(data));
            }
        }
    }
    write_all(to, &mut slices).await
}

/// State that the two halves of a connection share.
struct Halves {
    session: RefCell<Session>,
    /// Something waits to leave.
    leaves: Notify,
    /// Less waits to leave.
    left: Notify,
}

/// Serves a connection until it ends.
///
/// A connection beyond the bound is refused at its login.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, portal: Arc<Portal>, is_too_many: bool) {
    let _ = stream.set_nodelay(true);
    let (Ok(told_at), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return };
    let (from, mut to) = stream.into_split();
    let from = BufReader::with_capacity(READ_BUFFER_BYTES, from);
    let mut input = Input { from, header_digest: false, data_digest: false };
    let login = log_in(&shared, &mut input, &mut to, &portal, is_too_many);
    let (opened, numbers) = match tokio::time::timeout(GREETING_MOST, login).await {
        Ok(Ok(Ok(opened))) => opened,
        Ok(Ok(Err(failed))) => return shared.note_refused(peer.ip(), failed),
        Ok(Err(error)) => return shared.notes.ended(peer.ip(), None, &error),
        Err(_) => return shared.notes.note(peer.ip(), ": its login was not over in time"),
    };
    (input.header_digest, input.data_digest) = (opened.parameters.header_digest, opened.parameters.data_digest);
    let (ends, ended) = mpsc::unbounded_channel();
    let mut session = Session::new(Arc::clone(&shared), opened, told_at.to_string(), numbers.0, numbers.1, ends);
    let standing = shared.opened(&session.nexus, session.disk, portal);
    session.standing = Some(Arc::clone(&standing));
    let digests = (input.header_digest, input.data_digest);
    let halves = Rc::new(Halves { session: RefCell::new(session), leaves: Notify::new(), left: Notify::new() });
    let reads = read(&halves, &mut input);
    let writes = answer(&halves, &mut to, digests, ended, &standing);
    let ended = tokio::select! {
        ended = reads => ended,
        ended = writes => ended,
        () = standing.is_ended() => Ok(()),
    };
    let _ = to.shutdown().await;
    let session = halves.session.borrow();
    if let Err(error) = ended {
        shared.notes.ended(peer.ip(), Some(&session.nexus.initiator), &error);
    }
    shared.closed(&session.nexus, session.disk, &standing);
}

/// Goes through a login; gives what was agreed and the numbers of commands and statuses, or the status of its failure.
async fn log_in(
    shared: &Shared,
    input: &mut Input<BufReader<OwnedReadHalf>>,
    to: &mut OwnedWriteHalf,
    portal: &Portal,
    is_too_many: bool,
) -> std::io::Result<Result<(Opened, (u32, u32)), u16>> {
    let mut login = Login::default();
    let mut status_number = None;
    loop {
        let header = input.header().await?;
        if header.opcode() != ask::LOGIN {
            return Err(broken("there is no login before it"));
        }
        let data = input.bytes(&header).await?;
        let step = login.step(&header, &data, &shared.config, |name, disk| shared.place(portal, name, disk));
        let number = status_number.unwrap_or_else(|| header.u32(28));
        status_number = Some(number.wrapping_add(1));
        let command_number = header.u32(24);
        let mut answer = step.header.with(24, number).with(28, command_number).with(32, command_number);
        let mut end = step.end;
        if is_too_many || matches!(end, Some(Ok(_))) {
            match shared.next_session().filter(|_| !is_too_many) {
                Some(session) => answer = answer.with_u16(14, session),
                None => {
                    answer = answer.with_u16(36, status::OUT_OF_RESOURCES);
                    end = Some(Err(status::OUT_OF_RESOURCES));
                }
            }
        }
        write(to, &[Frame::new(answer, step.texts)], (false, false)).await?;
        match end {
            None => {}
            Some(Ok(opened)) => return Ok(Ok((opened, (command_number, number.wrapping_add(1))))),
            Some(Err(failed)) => return Ok(Err(failed)),
        }
    }
}

/// Reads units until the connection ends or the initiator has logged out.
async fn read(halves: &Halves, input: &mut Input<BufReader<OwnedReadHalf>>) -> Ended {
    loop {
        while halves.session.borrow().out_bytes > WAITING_MOST_BYTES {
            halves.left.notified().await;
        }
        let header = input.header().await?;
        if header.opcode() == ask::DATA {
            place(halves, input, &header).await?;
        } else {
            let data = input.bytes(&header).await?;
            halves.session.borrow_mut().take(&header, data).map_err(|_| broken("a unit is not allowed here"))?;
        }
        halves.leaves.notify_one();
        if halves.session.borrow().is_over {
            // The writer ends the connection once the answer has left.
            std::future::pending::<()>().await;
        }
    }
}

/// Reads data of a write to where they belong.
async fn place(halves: &Halves, input: &mut Input<BufReader<OwnedReadHalf>>, header: &Header) -> Ended {
    // The command's data are taken out, so that answers to others can leave while these come.
    let lent = halves.session.borrow_mut().lend(header);
    match lent {
        Lent::Whole(mut data, at) => {
            input.data(&mut data[at..at + header.data_bytes()]).await?;
            halves.session.borrow_mut().give_back(header, data);
        }
        Lent::Part(end) => {
            let data = input.bytes(header).await?;
            halves.session.borrow_mut().copy(header, &data[..end]);
        }
        Lent::Nothing => {
            input.bytes(header).await?;
        }
    }
    halves.session.borrow_mut().placed(header);
    Ok(())
}

/// Takes the ends of I/Os, and writes what leaves.
async fn answer(
    halves: &Halves,
    to: &mut OwnedWriteHalf,
    digests: (bool, bool),
    mut ended: mpsc::UnboundedReceiver<(u32, Done)>,
    standing: &Standing,
) -> Ended {
    // One that stays although its portal is given up is ended then.
    let mut must_leave = std::pin::pin!(None::<tokio::time::Sleep>);
    loop {
        tokio::select! {
            Some((tag, done)) = ended.recv() => halves.session.borrow_mut().ended(tag, done),
            () = halves.leaves.notified() => {}
            () = standing.is_asked_to_leave() => {
                halves.session.borrow_mut().ask_to_leave();
                must_leave.set(Some(tokio::time::sleep(LEAVE_MOST)));
            }
            () = async { must_leave.as_mut().as_pin_mut().expect("a time").await },
                if standing.portal.is_leaving() && must_leave.is_some() => return Ok(()),
        }
        while let Ok((tag, done)) = ended.try_recv() {
            halves.session.borrow_mut().ended(tag, done);
        }
        loop {
            let frames: Vec<Frame> = {
                let mut session = halves.session.borrow_mut();
                let count = session.out.len().min(ANSWERS_AT_ONCE);
                let frames: Vec<Frame> = session.out.drain(..count).collect();
                let bytes = |frame: &Frame| HEADER_BYTES + frame.data.as_ref().map_or(0, |(_, range)| range.len());
                session.out_bytes -= frames.iter().map(bytes).sum::<usize>();
                frames
            };
            if frames.is_empty() {
                break;
            }
            if let Some(delay) = standing.portal.delay() {
                tokio::time::sleep(delay).await;
            }
            tokio::time::timeout(TAKE_MOST, write(to, &frames, digests)).await??;
            halves.left.notify_one();
        }
        let session = halves.session.borrow();
        if session.is_over && session.out.is_empty() {
            return Ok(());
        }
    }
}
