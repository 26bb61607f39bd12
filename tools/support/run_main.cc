#include "tools/support/run_main.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

/// Errors: a part of what the tool printed has not reached its place.
absl::Status FlushOutput() {
  // A process of a group that leaves printing to another one has no buffer.
  if (std::cout.rdbuf() == nullptr) return absl::OkStatus();
  const bool was_good = std::cout.good();
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::cout.good() && std::ferror(stdout) == 0) return absl::OkStatus();
  // After an earlier failure the reason is gone.
  const std::string reason = was_good && errno != 0 ? absl::StrCat(": ", std::strerror(errno)) : "";
  return absl::DataLossError(absl::StrCat("the standard output could not be written", reason));
}

}  // namespace

int RunMain(std::string_view program, int (*main)(int argc, char** argv), int argc, char** argv, int failure) {
  int code = failure;
  try {
    code = main(argc, argv);
  } catch (const std::bad_alloc&) {
    Fail(program, absl::ResourceExhaustedError("there is not enough memory for what was asked for"), kFailure);
  } catch (const std::length_error& error) {
    Fail(program,
         absl::ResourceExhaustedError(absl::StrCat("what was asked for is larger than memory can be: ", error.what())),
         kFailure);
  }
  const absl::Status flushed = FlushOutput();
  if (flushed.ok()) return code;
  Fail(program, flushed, kFailure);
  return std::max(code, failure);
}

}  // namespace mpc::tools
