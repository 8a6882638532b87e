use std::{io, ptr::NonNull, slice};

use assay_load::content;

use crate::DeviceError;

const PAGE_BYTES: usize = 4096;

/// One page-aligned region cut into equal buffers, filled with what writes shall write.
///
/// The kernel reads and writes the buffers while requests are outstanding; the worker gives each outstanding request a
/// buffer of its own, except that duplicate writes share the last one, which nobody changes.
pub struct BufferPool {
    start: NonNull<u8>,
    total_bytes: usize,
    stride_bytes: usize,
    first_write: u32,
    duplicate: u32,
    serial: u64,
}

// SAFETY: the pool owns its memory; moving it to another thread moves only the pointer.
unsafe impl Send for BufferPool {}

impl BufferPool {
    /// `count` buffers of at least `buffer_bytes`; those from `first_write` on hold data to write.
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
        let total_bytes = stride_bytes * (count.max(1) as usize);
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
        let start = NonNull::new(address.cast::<u8>()).expect("a mapping is never at address 0");
        let mut pool =
            Self { start, total_bytes, stride_bytes, first_write, duplicate: count.saturating_sub(1), serial: seed };
        for buffer in first_write..count {
            content::fill(pool.block(buffer, pool.stride_bytes), compressible_share, seed ^ u64::from(buffer));
        }
        Ok(pool)
    }

    /// Address of a buffer, for the kernel.
    #[inline]
    pub fn address(&self, buffer: u32) -> *mut u8 {
        debug_assert!((buffer as usize + 1) * self.stride_bytes <= self.total_bytes);
        // SAFETY: the buffer lies in the mapping.
        unsafe { self.start.as_ptr().add(buffer as usize * self.stride_bytes) }
    }

    /// The whole region, to be registered.
    pub fn region(&self) -> libc::iovec {
        libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: self.total_bytes }
    }

    /// Makes a buffer's bytes unlike all written before, unless it holds the duplicate block.
    #[inline]
    pub fn prepare_write(&mut self, buffer: u32, length_bytes: u32) {
        debug_assert!(buffer >= self.first_write);
        if buffer != self.duplicate {
            self.serial = self.serial.wrapping_add(1);
            let serial = self.serial;
            content::stamp(self.block(buffer, length_bytes as usize), serial);
        }
    }

    fn block(&mut self, buffer: u32, length_bytes: usize) -> &mut [u8] {
        // SAFETY: the buffer lies in the mapping, and no request that uses it is outstanding.
        unsafe { slice::from_raw_parts_mut(self.address(buffer), length_bytes) }
    }
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size and is not used after.
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
}
