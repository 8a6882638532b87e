use std::{io, ptr::NonNull, slice, sync::Arc, time::SystemTime};

use assay_load::{LoadError, Request, content};

use crate::{DeviceError, loans::Loans};

const PAGE_BYTES: usize = 4096;
const NOT_LENT: &str = "the bytes of this pool are its own";

/// One page-aligned region cut into equal buffers.
///
/// The kernel reads and writes the buffers while requests are outstanding. Made by [`BufferPool::new`], they are filled
/// with what writes shall write: the worker gives each outstanding request a buffer of its own, except that duplicate
/// writes share the last one, which never changes. Made by [`BufferPool::of_frames`], their bytes are the caller's
/// whenever no outstanding request has them.
pub struct BufferPool {
    mapping: Arc<Mapping>,
    /// Of `mapping`, kept here to save the way through the pointer on every request.
    start: NonNull<u8>,
    stride_bytes: usize,
    /// Of all buffers together, and of the longest request.
    end_bytes: usize,
    longest_bytes: usize,
    count: u32,
    first_write: u32,
    serial: u64,
    /// Who has which frame, where the bytes are the caller's.
    loans: Option<Loans>,
}

/// The memory of a pool. A queue that lets the kernel use it holds a share of it, so that it stays where it is until then.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    total_bytes: usize,
    /// All frames, the last one first: every scattered I/O goes to a part of this table.
    descending: Box<[libc::iovec]>,
}

// SAFETY: the mapping is plain memory that no thread owns, the table its addresses; both go with the last share.
unsafe impl Send for Mapping {}
// SAFETY: shared access gives no access to the bytes.
unsafe impl Sync for Mapping {}

// SAFETY: the pool owns its memory; moving it to another thread moves only the pointer.
unsafe impl Send for BufferPool {}

impl BufferPool {
    /// `count` buffers of at least `buffer_bytes`; those from `first_write` on hold data to write.
    ///
    /// The data depend on `seed` and on the time: were they the same in every session, a device that deduplicates
    /// would store the second one for nothing.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the memory cannot be had.
    pub fn new(
        count: u32,
        buffer_bytes: u32,
        first_write: u32,
        compressible_share: f64,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        let stride_bytes = (buffer_bytes as usize).next_multiple_of(PAGE_BYTES);
        let mapping = Mapping::new(stride_bytes * count.max(1) as usize)?;
        let end_bytes = stride_bytes * count as usize;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seed = seed ^ (since_1970.as_nanos() as u64).wrapping_mul(0xd134_2543_de82_ef95);
        let start = mapping.start;
        let mut pool = Self {
            mapping: Arc::new(mapping),
            start,
            stride_bytes,
            end_bytes,
            longest_bytes: stride_bytes,
            count,
            first_write,
            serial: seed,
            loans: None,
        };
        for buffer in first_write..count {
            content::fill(pool.block(buffer, buffer_bytes), compressible_share, seed ^ u64::from(buffer));
        }
        Ok(pool)
    }

    /// `count` frames of `frame_bytes`, all zeros, whose bytes are the caller's: a request takes as many consecutive
    /// ones as its length needs, and has a tag below `tags`.
    ///
    /// # Errors
    /// [`DeviceError::Load`] when `frame_bytes` is no multiple of 4096, [`DeviceError::Io`] when the memory cannot be
    /// had.
    pub fn of_frames(count: u32, frame_bytes: u32, tags: u32) -> Result<Self, DeviceError> {
        let stride_bytes = frame_bytes as usize;
        if count == 0 || stride_bytes == 0 || !stride_bytes.is_multiple_of(PAGE_BYTES) {
            let message = format!("{count} frames of {frame_bytes} bytes: not whole pages of {PAGE_BYTES}");
            return Err(LoadError::InvalidValue { field: "frame_bytes", message }.into());
        }
        let end_bytes = stride_bytes * count as usize;
        let mut mapping = Mapping::new(end_bytes)?;
        let start = mapping.start;
        // SAFETY: every frame lies in the mapping.
        let address = |frame: u32| unsafe { start.as_ptr().add(frame as usize * stride_bytes) };
        let piece = |frame| libc::iovec { iov_base: address(frame).cast(), iov_len: stride_bytes };
        mapping.descending = (0..count).rev().map(piece).collect();
        Ok(Self {
            mapping: Arc::new(mapping),
            start,
            stride_bytes,
            end_bytes,
            longest_bytes: end_bytes,
            count,
            first_write: 0,
            serial: 0,
            loans: Some(Loans::new(count, frame_bytes, tags)),
        })
    }

    /// Address of a buffer, for a request of this length.
    ///
    /// # Panics
    /// There is no such buffer, or it is shorter: the kernel would be told to use memory that is not the pool's.
    #[inline]
    pub fn address(&self, buffer: u32, length_bytes: u32) -> *mut u8 {
        let (start, length) = (buffer as usize * self.stride_bytes, length_bytes as usize);
        assert!(
            length <= self.longest_bytes && start + length <= self.end_bytes,
            "buffer {buffer} of {length_bytes} bytes is none of {} of {} bytes",
            self.count,
            self.stride_bytes,
        );
        // SAFETY: the buffer lies in the mapping.
        unsafe { self.start.as_ptr().add(start) }
    }

    /// The pieces of a scattered I/O of several frames, for `readv` and `writev`: its first frame comes last.
    ///
    /// # Panics
    /// The length is not a whole number of frames, or there are too few frames.
    pub(crate) fn pieces(&self, first: u32, length_bytes: u32) -> &[libc::iovec] {
        let length = length_bytes as usize;
        assert!(length.is_multiple_of(self.stride_bytes), "{length_bytes} scattered bytes are not whole frames");
        let pieces = length / self.stride_bytes;
        let table = &self.mapping.descending;
        let start = table.len().checked_sub(first as usize + pieces).expect("a frame beyond the last");
        &table[start..start + pieces]
    }

    /// Whether the bytes are the caller's: what `lend`, `take_back` and `frame` are for.
    #[inline]
    pub(crate) fn lends(&self) -> bool {
        self.loans.is_some()
    }

    pub(crate) fn frame_bytes(&self) -> u32 {
        self.stride_bytes as u32
    }

    /// Gives an I/O its frames until it completes.
    ///
    /// # Panics
    /// Another outstanding I/O has one of them or has its tag, or there are no such frames or no such tag.
    pub(crate) fn lend(&mut self, request: &Request) {
        self.loans.as_mut().expect(NOT_LENT).lend(request);
    }

    /// The I/O with this tag has completed.
    pub(crate) fn take_back(&mut self, tag: u32) {
        self.loans.as_mut().expect(NOT_LENT).take_back(tag);
    }

    /// Bytes of one frame.
    ///
    /// # Panics
    /// There is no such frame, or an outstanding request has it.
    pub(crate) fn frame(&mut self, frame: u32) -> &mut [u8] {
        assert!(
            !self.loans.as_ref().expect(NOT_LENT).is_lent(frame),
            "frame {frame} belongs to an outstanding request"
        );
        self.block(frame, self.frame_bytes())
    }

    /// The whole region, to be registered.
    pub fn region(&self) -> libc::iovec {
        libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: self.mapping.total_bytes }
    }

    /// A share of the memory, for a user that may outlive the pool.
    pub(crate) fn mapping(&self) -> Arc<Mapping> {
        Arc::clone(&self.mapping)
    }

    /// Makes a buffer's bytes unlike all written before, unless it holds the duplicate block.
    #[inline]
    pub fn prepare_write(&mut self, buffer: u32, length_bytes: u32) {
        debug_assert!(buffer >= self.first_write);
        // The last buffer holds the duplicate block.
        if buffer + 1 != self.count {
            self.serial = self.serial.wrapping_add(1);
            let serial = self.serial;
            content::stamp(self.block(buffer, length_bytes), serial);
        }
    }

    fn block(&mut self, buffer: u32, length_bytes: u32) -> &mut [u8] {
        // SAFETY: the buffer lies in the mapping, and no request that uses it is outstanding.
        unsafe { slice::from_raw_parts_mut(self.address(buffer, length_bytes), length_bytes as usize) }
    }
}

impl Mapping {
    fn new(total_bytes: usize) -> Result<Self, DeviceError> {
        // SAFETY: an anonymous private mapping; the result is checked.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            let what = format!("{total_bytes} bytes of buffers");
            return Err(DeviceError::Io { what, source: io::Error::last_os_error() });
        }
        // A child process must not make copies of pages the device is writing into; that it may is only a loss of speed.
        // SAFETY: the range is the mapping just made.
        unsafe { libc::madvise(address, total_bytes, libc::MADV_DONTFORK) };
        let start = NonNull::new(address.cast::<u8>()).expect("a mapping is never at address 0");
        Ok(Self { start, total_bytes, descending: Box::default() })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size, and every user has dropped its share.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.total_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_writes_differ_and_the_duplicate_stays() {
        let mut pool = BufferPool::new(3, 8192, 0, 0.0, 1).unwrap();
        let duplicate = pool.block(2, 8192).to_vec();
        pool.prepare_write(0, 8192);
        let first = pool.block(0, 8192).to_vec();
        pool.prepare_write(0, 8192);
        pool.prepare_write(2, 8192);
        assert_ne!(first, pool.block(0, 8192).to_vec());
        assert_eq!(duplicate, pool.block(2, 8192).to_vec());
    }

    #[test]
    fn two_pools_of_one_seed_hold_different_data() {
        let mut left = BufferPool::new(2, 4096, 0, 0.0, 1).unwrap();
        let mut right = BufferPool::new(2, 4096, 0, 0.0, 1).unwrap();
        assert_ne!(left.block(0, 4096).to_vec(), right.block(0, 4096).to_vec());
    }

    #[test]
    fn buffers_are_aligned_for_direct_io() {
        let pool = BufferPool::new(3, 512, 3, 0.0, 1).unwrap();
        assert!((0..3).all(|buffer| (pool.address(buffer, 512) as usize).is_multiple_of(PAGE_BYTES)));
    }

    #[test]
    #[should_panic(expected = "buffer 2 of 512 bytes is none of 2")]
    fn a_buffer_that_is_not_there_has_no_address() {
        BufferPool::new(2, 512, 0, 0.0, 1).unwrap().address(2, 512);
    }

    #[test]
    #[should_panic(expected = "buffer 1 of 8192 bytes is none of 2")]
    fn a_request_longer_than_its_buffer_has_no_address() {
        BufferPool::new(2, 4096, 0, 0.0, 1).unwrap().address(1, 8192);
    }

    #[test]
    fn frames_are_whole_pages_one_after_the_other() {
        for (count, frame_bytes) in [(1, 0), (1, 512), (1, 6144), (0, 8192)] {
            assert!(matches!(BufferPool::of_frames(count, frame_bytes, 1), Err(DeviceError::Load(_))));
        }
        let pool = BufferPool::of_frames(3, 8192, 1).unwrap();
        let start = pool.address(0, 3 * 8192) as usize;
        assert!(start.is_multiple_of(PAGE_BYTES));
        assert_eq!([1, 2].map(|frame| pool.address(frame, 8192) as usize - start), [8192, 16_384]);
        let pieces = pool.pieces(1, 2 * 8192);
        assert_eq!([0, 1].map(|piece| pieces[piece].iov_base as usize - start), [16_384, 8192]);
        assert!(pieces.iter().all(|piece| piece.iov_len == 8192));
    }

    #[test]
    #[should_panic(expected = "buffer 1 of 24576 bytes is none of 3 of 8192 bytes")]
    fn frames_beyond_the_last_have_no_address() {
        BufferPool::of_frames(3, 8192, 1).unwrap().address(1, 3 * 8192);
    }

    #[test]
    #[should_panic(expected = "a frame beyond the last")]
    fn frames_beyond_the_last_are_no_pieces() {
        BufferPool::of_frames(3, 8192, 1).unwrap().pieces(1, 3 * 8192);
    }

    #[test]
    #[should_panic(expected = "the bytes of this pool are its own")]
    fn a_pool_filled_for_writing_hands_no_bytes_out() {
        BufferPool::new(1, 4096, 0, 0.0, 1).unwrap().frame(0);
    }

    #[test]
    fn memory_stays_as_long_as_somebody_holds_a_share() {
        let mut pool = BufferPool::new(1, 4096, 0, 0.0, 1).unwrap();
        let first = pool.block(0, 4096)[0];
        let address = pool.address(0, 4096);
        let share = pool.mapping();
        drop(pool);
        // SAFETY: the share keeps the mapping.
        assert_eq!(unsafe { address.read() }, first);
        drop(share);
    }
}
