// .mpcx files: the Programs of a model with what a run needs to begin, without the compiler that made them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// A small state entry that the host writes: a learning rate, a counter, the fields of a loss scaler. Also every entry
/// that begins with one number throughout (optimizer slots, biases, running statistics).
struct InitialValue {
  std::string name;
  Role role = Role::kParameter;
  TensorSpec spec;
  std::vector<std::uint8_t> bytes;  ///< the whole value, or one element that fills it
};

/// Parameters that begin with random numbers. `program` ("init_state", for the CPU, so that they are the same on every
/// device) has no state; each output is named as the entry that it begins and has its shape, in f32. Its one input is
/// the seed (i64).
struct InitialDraw {
  Program program;
  std::uint64_t seed = 0;  ///< of the process that wrote the package; a run may take another one
};

/// The content of a file. Programs of one package bind to one state; each state entry that is not derived has one
/// InitialValue or is the output of one InitialDraw. No parameter's value is in it.
struct Package {
  std::vector<std::pair<std::string, std::string>> metadata;  ///< "model", "mpc", ...: see docs/programs.md
  std::vector<Program> programs;                              ///< "train_step", "eval_step", "predict"
  std::vector<InitialDraw> draws;
  std::vector<InitialValue> initial_values;

  /// The Program called `name`, or null.
  const Program* Find(std::string_view name) const;
  /// The metadata entry `key`; empty where there is none.
  std::string_view Metadata(std::string_view key) const;
  /// What the state of every Program is bound to, by name, without derived state; in the order of the Programs.
  std::vector<StateBinding> State() const;
};

/// The first bytes of a file, and the version that this mpc writes and reads.
inline constexpr std::string_view kProgramFileMagic = "MPCX";
inline constexpr std::uint32_t kProgramFileVersion = 2;

/// Errors (INVALID_ARGUMENT), everything that is wrong: a Program that CheckProgram refuses; code in format "object";
/// two Programs of one name; Programs that bind one name to different types; state without a beginning, or with one of
/// another size; a draw that has state, or another input than a seed.
absl::Status CheckPackage(const Package& package);

/// The bytes of a file. Errors: those of CheckPackage; more than 1 GiB of constants and code (RESOURCE_EXHAUSTED).
absl::StatusOr<std::vector<std::uint8_t>> SerializePackage(const Package& package);
/// Writes them beside `path`, synced and renamed. Errors: those of SerializePackage and WriteFileAtomically.
absl::Status WriteProgramFile(const std::string& path, const Package& package);

/// Reads and checks everything before anything is returned. Errors (INVALID_ARGUMENT) name `origin` and the reason: no
/// .mpcx file, and what it begins with; another format version; truncated or too long, with both sizes; a checksum that
/// differs; a table that is malformed; what CheckPackage refuses.
absl::StatusOr<Package> ParsePackage(absl::Span<const std::uint8_t> content, const std::string& origin);
/// As ParsePackage. Errors also: NOT_FOUND, UNAVAILABLE with the system's reason.
absl::StatusOr<Package> ReadProgramFile(const std::string& path);

}  // namespace mpc::runtime
