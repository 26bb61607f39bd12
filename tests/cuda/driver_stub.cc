// Stands in for the driver's library, libcuda.so.1, where no driver is installed. It takes code and never runs any.
// With it cuDNN finalises plans of engines that it compiles at run time. cuInit fails, so that nothing asks for
// properties of a device. cuDNN counts devices all the same, and loads what it compiled only where there is one.
#include "tests/cuda/driver_stub.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstddef>
#include <cstring>

namespace {

// Of the driver's interface: values of CUresult, and the machine of an ELF file of a GPU.
constexpr int kSuccess = 0, kNotInitialized = 3, kNoDevice = 100, kInvalidImage = 200, kNotFound = 500;
constexpr int kCudaMachine = 190;
constexpr int kDriverVersion = 13000;

int loaded_architecture = 0;
int a_library = 0, a_kernel = 0;  // their addresses are handles

}  // namespace

extern "C" {

int cuInit(unsigned /*flags*/) { return kNoDevice; }

int cuDriverGetVersion(int* version) {
  *version = kDriverVersion;
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}

int cuGetErrorString(int /*error*/, const char** text) {
  *text = "the stand-in for the driver has no device";
  return kSuccess;
}

/// The code of one kernel, as machine code for one architecture.
int cuLibraryLoadData(void** library, const void* code, int* /*options*/, void** /*values*/, unsigned /*count*/,
                      int* /*library_options*/, void** /*library_values*/, unsigned /*library_count*/) {
  Elf64_Ehdr header;
  std::memcpy(&header, code, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != kCudaMachine) return kInvalidImage;
  loaded_architecture = static_cast<int>(header.e_flags >> 8 & 0xff);
  *library = &a_library;
  return kSuccess;
}

int cuLibraryUnload(void* /*library*/) { return kSuccess; }

int cuLibraryGetKernel(void** kernel, void* /*library*/, const char* /*name*/) {
  *kernel = &a_kernel;
  return kSuccess;
}

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, int* result);

/// Libraries look for this function, and through it for all others.
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

int cuGetProcAddress_v2(const char* name, void** function, int /*version*/, unsigned long long /*flags*/, int* result) {
  Dl_info self;
  *function = nullptr;
  if (dladdr(reinterpret_cast<const void*>(&cuInit), &self) != 0) {
    void* const library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (library != nullptr) {
      *function = dlsym(library, name);
      dlclose(library);
    }
  }
  if (result != nullptr) *result = *function == nullptr ? 1 : 0;  // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, ..._SUCCESS
  return *function == nullptr ? kNotFound : kSuccess;
}

// cuDNN takes no library without these, and calls none of them to finalise a plan.
#define MPC_NOT_CALLED(name) \
  int name() { return kNotInitialized; }
MPC_NOT_CALLED(cuCtxGetCurrent)
MPC_NOT_CALLED(cuCtxGetLimit)
MPC_NOT_CALLED(cuCtxPopCurrent)
MPC_NOT_CALLED(cuCtxPushCurrent)
MPC_NOT_CALLED(cuDeviceGet)
MPC_NOT_CALLED(cuGetErrorName)
MPC_NOT_CALLED(cuKernelGetAttribute)
MPC_NOT_CALLED(cuKernelSetAttribute)
MPC_NOT_CALLED(cuLaunchCooperativeKernel)
MPC_NOT_CALLED(cuLaunchKernel)
MPC_NOT_CALLED(cuLaunchKernelEx)
MPC_NOT_CALLED(cuLibraryLoadFromFile)
MPC_NOT_CALLED(cuLinkAddData)
MPC_NOT_CALLED(cuLinkComplete)
MPC_NOT_CALLED(cuLinkCreate)
MPC_NOT_CALLED(cuLinkDestroy)
MPC_NOT_CALLED(cuOccupancyMaxPotentialClusterSize)
MPC_NOT_CALLED(cuStreamGetCtx)
#undef MPC_NOT_CALLED

int MpcLoadedArchitecture() {
  const int architecture = loaded_architecture;
  loaded_architecture = 0;
  return architecture;
}
}
