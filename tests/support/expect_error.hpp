// Expectations on thrown errors, and large inputs that take no memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::test {

/// `call` throws an E of this code and input whose message has all of `words` in it.
template <class E, class F>
void expect_error(F&& call, ErrorCode code, const std::string& input,
                  const std::vector<std::string>& words) {
  try {
    call();
  } catch (const E& error) {
    EXPECT_STREQ(error_code_name(error.code()), error_code_name(code)) << error.what();
    EXPECT_EQ(error.input(), input) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "'" << word << "' is not in: " << error.what();
    }
    return;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type of error was thrown: " << error.what();
    return;
  }
  ADD_FAILURE() << "no error was thrown; expected " << error_code_name(code);
}

/// Bytes that read as zero; only those written to take memory.
class UntouchedPages {
 public:
  explicit UntouchedPages(std::size_t bytes) : bytes_(bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::uint8_t*>(memory);
  }
  ~UntouchedPages() { munmap(data_, bytes_); }
  UntouchedPages(const UntouchedPages&) = delete;
  UntouchedPages& operator=(const UntouchedPages&) = delete;
  [[nodiscard]] std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace chainfold::test
