// The column files that make_data.py writes, mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

/// A file mapped for reading. Throws std::runtime_error naming the file.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  template <class T>
  [[nodiscard]] std::span<const T> values() const noexcept {
    return {static_cast<const T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// What query 6 reads of lineitem: days since 1970-01-01, and decimals as hundredths.
struct Columns {
  explicit Columns(const std::filesystem::path& folder);

  std::int64_t rows = 0;
  double scale_factor = 0;
  MappedFile ship_file, discount_file, quantity_file, price_file;
  std::span<const std::int32_t> ship;
  std::span<const std::int64_t> discount, quantity, price;

  /// Bytes of the four columns.
  [[nodiscard]] std::int64_t bytes() const noexcept { return rows * (4 + 3 * 8); }
};
