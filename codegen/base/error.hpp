// Errors of Chainfold. Every failure that a caller can cause or must handle is one of these types;
// the library never prints and never aborts. The message always names what is wrong and how to mend
// it; `input` names the binding, parameter or option concerned, where there is one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace chainfold {

/// What kind of mistake or failure an Error reports; stable, so that callers can branch on it.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  ///< a value out of its range: S < 1, a negative count, a bad option value
  unknown_input,     ///< a binding whose name the expression does not use
  missing_input,     ///< an input or parameter of the expression that was not bound
  duplicate_input,   ///< one name bound twice, or declared with two types
  type_mismatch,     ///< a binding, output or argument of another type than the expression's
  length_mismatch,   ///< inputs of one run that differ in length
  not_a_multiple,    ///< the element count is no multiple of the segment size and no tail is asked
                     ///< for
  null_pointer,      ///< a null pointer where data is needed
  misaligned,        ///< a pointer that is not aligned to its element type
  wrong_memory,      ///< a host pointer where a device pointer is needed
  wrong_offset,      ///< offsets of segments that decrease, are negative or lie behind the elements
  too_small,         ///< scratch or output capacity below what the launch needs
  unsupported,       ///< a program or option this version does not support (never ignored)
  missing_library,   ///< libcuda, libnvrtc or the CPU plugin was not found or does not fit
  jit_failed,        ///< a compiler rejected generated code
  device_failed,     ///< the driver reported an error
  out_of_memory,     ///< host or device memory ran out
  internal,          ///< a defect of Chainfold itself
};

/// The stable lower-case name of a code, e.g. "not_a_multiple".
const char* error_code_name(ErrorCode code) noexcept;

/// The base of all errors. `what()` is one readable paragraph; `input()` is empty or a name.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::string input = {})
      : std::runtime_error(message), code_(code), input_(std::move(input)) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& input() const noexcept { return input_; }

 private:
  ErrorCode code_;
  std::string input_;
};

/// The caller's mistake: the message names the input and the fix.
class UserError : public Error {
 public:
  using Error::Error;
};

/// A compiler refused generated code. `line` is the generated line with its number, `log` the
/// compiler's own words, `source` the whole text that was compiled.
class JitError : public Error {
 public:
  JitError(const std::string& message, std::string line, std::string log, std::string source)
      : Error(ErrorCode::jit_failed, message),
        line_(std::move(line)),
        log_(std::move(log)),
        source_(std::move(source)) {}
  [[nodiscard]] const std::string& line() const noexcept { return line_; }
  [[nodiscard]] const std::string& log() const noexcept { return log_; }
  [[nodiscard]] const std::string& source() const noexcept { return source_; }

 private:
  std::string line_, log_, source_;
};

/// A device, driver or library problem: not the caller's expression, but their machine.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A defect of Chainfold: carries a dump of what it was working on.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message, std::string dump = {})
      : Error(ErrorCode::internal,
              "internal error: " + message + (dump.empty() ? "" : "\n" + dump)),
        dump_(std::move(dump)) {}
  [[nodiscard]] const std::string& dump() const noexcept { return dump_; }

 private:
  std::string dump_;
};

}  // namespace chainfold
