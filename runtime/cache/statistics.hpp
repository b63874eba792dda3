// What a program can learn about the cache of compiled kernels and tuning records on disk.
#pragma once

#include <cstdint>
#include <string>

namespace chainfold {

/// Figures about the cache on disk since the process began.
struct CacheStatistics {
  std::string directory;         ///< where entries are kept; empty when only memory is used
  std::int64_t hits = 0;         ///< entries found
  std::int64_t misses = 0;       ///< entries asked for and not found, damaged ones included
  std::int64_t stores = 0;       ///< entries written to disk
  std::int64_t evictions = 0;    ///< entries that this process removed to stay within the limit
  std::int64_t damaged = 0;      ///< entries that failed their check and were removed
  std::int64_t faults = 0;       ///< times the disk was of no use; `warning` has the first
  std::uint64_t bytes = 0;       ///< on disk now, in blocks of 4 KiB, those of other processes too
  std::uint64_t byte_limit = 0;  ///< what CHAINFOLD_CACHE_BYTES allows
  std::string warning;           ///< the first fault, and how to mend it; empty if there was none
};

/// The figures of this process. Thread-safe; reads the cache's folders for `bytes`.
///
/// The cache lies in CHAINFOLD_CACHE_DIR (empty: in memory only), else $XDG_CACHE_HOME/chainfold,
/// else $HOME/.cache/chainfold if HOME is a folder. CHAINFOLD_CACHE_BYTES limits it (default 1G).
/// CHAINFOLD_CACHE turns it off by `off`, `0`, `no` or `false`, in upper or lower case. With `on`,
/// `1`, `yes`, `true` or nothing it is on. With any other word it is on, too, and `warning` says
/// so. These variables are read once, when a kernel is first compiled.
CacheStatistics cache_statistics();

}  // namespace chainfold
