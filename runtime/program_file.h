// .mpcx files: the Programs of a model with all that a run needs to begin, without the compiler that made them.
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

/// The initial value of a small state entry that the host writes: a learning rate, a counter, a field of a loss scaler.
/// Also that of every entry that begins with one number throughout (optimizer slots, biases, running statistics).
struct InitialValue {
  std::string name;
  Role role = Role::kParameter;
  TensorSpec spec;
  std::vector<std::uint8_t> bytes;  ///< the whole value, or one element that fills it
};

/// Parameters that begin with random numbers. `program` is "init_state", for the CPU, so that the numbers are the same
/// on every device. It has no state. Each output has the name and the shape of the entry that it initialises, in f32.
/// Its one input is the seed (i64).
struct InitialDraw {
  Program program;
  std::uint64_t seed = 0;  ///< seed of the process that wrote the package; a run may take another one
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
  /// The bindings of all Programs, one for each name, without derived state. They are in the order of the Programs.
  std::vector<StateBinding> State() const;
};

/// The first bytes of a file, and the version that this mpc writes and reads.
inline constexpr std::string_view kProgramFileMagic = "MPCX";
inline constexpr std::uint32_t kProgramFileVersion = 2;

/// Checks a package. Errors (INVALID_ARGUMENT) list everything that is wrong. About Programs: one that CheckProgram
/// refuses, code in format "object", two of one name, or one name bound to different types. About state: no initial
/// value, or one of another size. About draws: one that has state, or an input other than a seed.
absl::Status CheckPackage(const Package& package);

/// The bytes of a file. Errors: those of CheckPackage; more than 1 GiB of constants and code (RESOURCE_EXHAUSTED).
absl::StatusOr<std::vector<std::uint8_t>> SerializePackage(const Package& package);
/// Writes them beside `path`, synced and renamed. Errors: those of SerializePackage and WriteFileAtomically.
absl::Status WriteProgramFile(const std::string& path, const Package& package);

/// Reads and checks everything before anything is returned. Errors (INVALID_ARGUMENT) name `origin` and the reason. The
/// content is no .mpcx file (with its first bytes), has another format version, or is truncated or too long (with both
/// sizes). Or its checksum differs, a table is malformed, or CheckPackage refuses it.
absl::StatusOr<Package> ParsePackage(absl::Span<const std::uint8_t> content, const std::string& origin);
/// As ParsePackage. Errors also: NOT_FOUND, UNAVAILABLE with the system's reason.
absl::StatusOr<Package> ReadProgramFile(const std::string& path);

}  // namespace mpc::runtime
