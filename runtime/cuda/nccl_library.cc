#include "runtime/cuda/nccl_library.h"

#ifdef MPC_HAVE_NCCL

#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/cuda/version_text.h"

namespace mpc::runtime {
namespace {

/// The first version with non-blocking communicators.
constexpr int kOldestVersion = 21400;
static_assert(NCCL_VERSION_CODE >= kOldestVersion, "nccl.h is older than 2.14; configure with -DMPC_NCCL=OFF");

/// The functions that are called, by NCCL's names.
struct NcclFunctions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;

  /// Finds all of them. Returns the name of the first that is missing, or null.
  const char* Find(void* library) {
    const char* missing = nullptr;
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr && missing == nullptr) missing = name;
    };
    find("ncclGetVersion", get_version);
    find("ncclGetErrorString", get_error_string);
    find("ncclGetLastError", get_last_error);
    find("ncclGetUniqueId", get_unique_id);
    find("ncclCommInitRankConfig", comm_init_rank_config);
    find("ncclCommGetAsyncError", comm_get_async_error);
    find("ncclCommAbort", comm_abort);
    find("ncclGroupStart", group_start);
    find("ncclGroupEnd", group_end);
    find("ncclSend", send);
    find("ncclRecv", recv);
    find("ncclAllGather", all_gather);
    find("ncclAllReduce", all_reduce);
    return missing;
  }
};

ncclComm_t AsCommunicator(NcclApi::Communicator communicator) { return static_cast<ncclComm_t>(communicator); }
cudaStream_t AsCudaStream(CudaApi::Stream stream) { return static_cast<cudaStream_t>(stream); }

class NcclLibrary final : public NcclApi {
 public:
  NcclLibrary(const NcclFunctions& functions, int version) : functions_(functions), version_(version) {}

  std::string Version() override { return LibraryVersionText(version_); }

  absl::StatusOr<NcclId> MakeId() override {
    ncclUniqueId made;
    static_assert(sizeof made.internal == sizeof(NcclId));
    if (absl::Status status = StatusOf(functions_.get_unique_id(&made), "ncclGetUniqueId"); !status.ok()) return status;
    NcclId id;
    std::copy(std::begin(made.internal), std::end(made.internal), id.begin());
    return id;
  }

  absl::StatusOr<Communicator> Create(const NcclId& id, int rank, int size) override {
    ncclUniqueId unique;
    std::copy(id.begin(), id.end(), std::begin(unique.internal));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t communicator = nullptr;
    const ncclResult_t result = functions_.comm_init_rank_config(&communicator, size, unique, rank, &config);
    if (absl::Status status = StatusOf(result, "ncclCommInitRankConfig"); !status.ok()) {
      if (communicator != nullptr) functions_.comm_abort(communicator);
      return status;
    }
    return static_cast<Communicator>(communicator);
  }

  absl::StatusOr<bool> Settled(Communicator communicator) override {
    ncclResult_t state = ncclSuccess;
    ncclResult_t result = functions_.comm_get_async_error(AsCommunicator(communicator), &state);
    if (absl::Status status = StatusOf(result, "ncclCommGetAsyncError"); !status.ok()) return status;
    if (absl::Status status = StatusOf(state, "a call under way"); !status.ok()) return status;
    return state != ncclInProgress;
  }

  absl::Status Abort(Communicator communicator) override {
    // NCCL ends work under way at once. Then it waits until no graph holds work of the communicator, which may be long.
    std::thread([abort = functions_.comm_abort, communicator] { abort(AsCommunicator(communicator)); }).detach();
    return absl::OkStatus();
  }

  absl::Status BeginGroup() override { return StatusOf(functions_.group_start(), "ncclGroupStart"); }
  absl::Status EndGroup() override { return StatusOf(functions_.group_end(), "ncclGroupEnd"); }

  absl::Status Send(const void* data, std::size_t bytes, int peer, Communicator communicator,
                    CudaApi::Stream stream) override {
    const ncclResult_t result =
        functions_.send(data, bytes, ncclInt8, peer, AsCommunicator(communicator), AsCudaStream(stream));
    return StatusOf(result, absl::StrCat("ncclSend of ", bytes, " bytes to rank ", peer));
  }

  absl::Status Receive(void* data, std::size_t bytes, int peer, Communicator communicator,
                       CudaApi::Stream stream) override {
    const ncclResult_t result =
        functions_.recv(data, bytes, ncclInt8, peer, AsCommunicator(communicator), AsCudaStream(stream));
    return StatusOf(result, absl::StrCat("ncclRecv of ", bytes, " bytes from rank ", peer));
  }

  absl::Status AllGather(const void* input, void* output, std::size_t bytes, Communicator communicator,
                         CudaApi::Stream stream) override {
    const ncclResult_t result =
        functions_.all_gather(input, output, bytes, ncclInt8, AsCommunicator(communicator), AsCudaStream(stream));
    return StatusOf(result, absl::StrCat("ncclAllGather of ", bytes, " bytes"));
  }

  absl::Status AllReduceSum(const void* input, void* output, std::size_t elements, DType dtype,
                            Communicator communicator, CudaApi::Stream stream) override {
    const ncclDataType_t type = dtype == DType::kF32 ? ncclFloat32 : dtype == DType::kF16 ? ncclFloat16 : ncclBfloat16;
    const ncclResult_t result = functions_.all_reduce(input, output, elements, type, ncclSum,
                                                      AsCommunicator(communicator), AsCudaStream(stream));
    return StatusOf(result, absl::StrCat("ncclAllReduce of ", elements, " ", std::string(DTypeName(dtype))));
  }

  absl::Status AllReduceMax(const void* input, void* output, std::size_t elements, Communicator communicator,
                            CudaApi::Stream stream) override {
    const ncclResult_t result = functions_.all_reduce(input, output, elements, ncclInt32, ncclMax,
                                                      AsCommunicator(communicator), AsCudaStream(stream));
    return StatusOf(result, absl::StrCat("ncclAllReduce of ", elements, " i32"));
  }

 private:
  /// What is under way has not failed.
  absl::Status StatusOf(ncclResult_t result, absl::string_view call) const {
    if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
    const char* const last = functions_.get_last_error(nullptr);
    return absl::InternalError(absl::StrCat(call, ": ", functions_.get_error_string(result),
                                            last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last));
  }

  const NcclFunctions functions_;
  const int version_;
};

absl::Status NotOpened(absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("NCCL was not found: ", why, "; MPC_NCCL_LIBRARY names the library, libnccl.so.2"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclApi>> OpenNcclLibrary(const std::vector<std::string>& files) {
  std::vector<std::string> reasons;
  for (const std::string& file : files) {
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      reasons.emplace_back(::dlerror());
      continue;
    }
    NcclFunctions functions;
    if (const char* missing = functions.Find(library); missing != nullptr) {
      return NotOpened(absl::StrCat(file, " has no ", missing));
    }
    int version = 0;
    functions.get_version(&version);
    if (version < kOldestVersion || version / 10000 != NCCL_MAJOR) {
      return NotOpened(absl::StrCat(file, " is NCCL ", LibraryVersionText(version),
                                    ", and mpc takes 2.14 or later of version ", NCCL_MAJOR));
    }
    return std::make_unique<NcclLibrary>(functions, version);
  }
  return NotOpened(absl::StrJoin(reasons, "; "));
}

absl::StatusOr<NcclApi*> OpenNccl() {
  // It is never closed: NCCL has threads.
  static auto* const opened = new absl::StatusOr<std::unique_ptr<NcclApi>>([] {
    const char* const given = std::getenv("MPC_NCCL_LIBRARY");
    if (given != nullptr && *given != '\0') return OpenNcclLibrary({given});
    return OpenNcclLibrary({"libnccl.so.2", MPC_NCCL_BUILD_LIBRARY});
  }());
  if (!opened->ok()) return opened->status();
  return (*opened)->get();
}

}  // namespace mpc::runtime

#else

namespace mpc::runtime {

absl::StatusOr<NcclApi*> OpenNccl() { return OpenNcclLibrary({}).status(); }

absl::StatusOr<std::unique_ptr<NcclApi>> OpenNcclLibrary(const std::vector<std::string>&) {
  return absl::UnavailableError("this build has no NCCL (MPC_NCCL=OFF, or nccl.h was not found)");
}

}  // namespace mpc::runtime

#endif
