#include "chainfold/codegen/base/error.hpp"

namespace chainfold {

const char* error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::unknown_input: return "unknown_input";
    case ErrorCode::missing_input: return "missing_input";
    case ErrorCode::duplicate_input: return "duplicate_input";
    case ErrorCode::type_mismatch: return "type_mismatch";
    case ErrorCode::length_mismatch: return "length_mismatch";
    case ErrorCode::not_a_multiple: return "not_a_multiple";
    case ErrorCode::null_pointer: return "null_pointer";
    case ErrorCode::misaligned: return "misaligned";
    case ErrorCode::wrong_memory: return "wrong_memory";
    case ErrorCode::wrong_offset: return "wrong_offset";
    case ErrorCode::too_small: return "too_small";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::missing_library: return "missing_library";
    case ErrorCode::jit_failed: return "jit_failed";
    case ErrorCode::device_failed: return "device_failed";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

}  // namespace chainfold
