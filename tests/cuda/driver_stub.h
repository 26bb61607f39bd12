// What a test asks the stand-in for the driver's library, beside the driver's own interface.
#pragma once

extern "C" {

/// The compute capability, as 90, that the code loaded last was compiled for; 0: none was loaded since this was called.
int MpcLoadedArchitecture();
}
