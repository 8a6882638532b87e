use std::{io, ptr::NonNull, slice, sync::Arc, time::SystemTime};

use assay_load::content;

use crate::DeviceError;

const PAGE_BYTES: usize = 4096;

/// One page-aligned region cut into equal buffers, filled with what writes shall write.
///
/// The kernel reads and writes the buffers while requests are outstanding; the worker gives each outstanding request a
/// buffer of its own, except that duplicate writes share the last one, which nobody changes.
pub struct BufferPool {
    mapping: Arc<Mapping>,
    /// Of `mapping`, kept here to save the way through the pointer on every request.
    start: NonNull<u8>,
    stride_bytes: usize,
    count: u32,
    first_write: u32,
    serial: u64,
}

/// The memory of a pool. Whoever lets the kernel use it holds a share of it, so that it stays where it is until then.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    total_bytes: usize,
}

// SAFETY: the mapping is plain memory that no thread owns; it is freed once, by whoever drops the last share.
unsafe impl Send for Mapping {}
// SAFETY: shared access gives nobody access to the bytes.
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
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seed = seed ^ (since_1970.as_nanos() as u64).wrapping_mul(0xd134_2543_de82_ef95);
        let start = mapping.start;
        let mut pool = Self { mapping: Arc::new(mapping), start, stride_bytes, count, first_write, serial: seed };
        for buffer in first_write..count {
            content::fill(pool.block(buffer, buffer_bytes), compressible_share, seed ^ u64::from(buffer));
        }
        Ok(pool)
    }

    /// Address of a buffer, for a request of this length.
    ///
    /// # Panics
    /// There is no such buffer, or it is shorter: the kernel would be told to use memory that is not the pool's.
    #[inline]
    pub fn address(&self, buffer: u32, length_bytes: u32) -> *mut u8 {
        assert!(
            buffer < self.count && length_bytes as usize <= self.stride_bytes,
            "buffer {buffer} of {length_bytes} bytes is none of {} of {} bytes",
            self.count,
            self.stride_bytes,
        );
        // SAFETY: the buffer lies in the mapping.
        unsafe { self.start.as_ptr().add(buffer as usize * self.stride_bytes) }
    }

    /// The whole region, to be registered.
    pub fn region(&self) -> libc::iovec {
        libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: self.mapping.total_bytes }
    }

    /// A share of the memory, for whoever may use it longer than the pool lives.
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
        Ok(Self { start, total_bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size, and whoever used it has dropped its share.
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
