// AMX for processors without it: the instructions that products on tiles consist of, computed where the processor
// refuses them.
#pragma once

namespace mpc::test {

/// From now on products may be computed on tiles in this process. Where the processor has none, SIGILL's handler
/// computes ldtilecfg, tilerelease, tilezero, tileloadd, tilestored and tdpbf16ps as the Software Developer's Manual
/// says. It ends the process where tiles are used without a configuration. False, and nothing happens, where the
/// processor lacks AVX-512, which code around tiles needs.
bool EmulateTiles();

/// What the emulator makes of tdpbf16ps, on any processor: c += a b for tiles of 16 rows of 64 bytes.
void MultiplyPairsInSoftware(const void* a, const void* b, float* c);

}  // namespace mpc::test
