"""What tools/gpu/machine_code.py reads of machine code: machine_code_test.py TOOLS OCCUPANCY."""

import contextlib
import io
import pathlib
import sys
import unittest

OCCUPANCY = sys.argv.pop(2)
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import machine_code

LISTING = """
.text.first:
first:
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128.CONSTANT R8, [R4.64] ;
        /*0020*/              @UP1 LDG.E.64 R8, [R4.64] ;
        /*0030*/                   STG.E.128 desc[UR4][R2.64], R8 ;
        /*0040*/                   LDS.128 R8, [R4] ;
        /*0050*/                   F2FP.BF16.F32.PACK_AB R3, R3, R2 ;
        /*0060*/                   HADD2.F32 R3, -RZ, R2.H0_H0 ;
        /*0070*/                   HADD2 R3, R3, R2 ;
.text.second:
second:
        /*0000*/                   STL [R1], R2 ;
        /*0010*/                   LDL.LU R2, [R1] ;
"""


def kernel(name="k", **fields):
    return machine_code.Kernel(90, "x.cu", name, **fields)


class MachineCode(unittest.TestCase):
    def test_counts_each_kernels_instructions(self):
        first, second = kernel("first"), kernel("second")
        machine_code.count_instructions({"first": first, "second": second}, LISTING)
        self.assertEqual((first.accesses, first.wide, first.conversions, first.local), (3, 2, 2, 0))
        self.assertEqual((second.accesses, second.local), (0, 2))

    def test_refuses_stack_but_of_the_kernels_that_may_have_some(self):
        machine_code.check_frames([kernel("MapKernel_SinOp", frame=40), kernel(frame=0)])
        for framed in (kernel("MapKernel_SinOp", frame=48), kernel(frame=8)):
            with self.assertRaisesRegex(SystemExit, "1 kernels use the stack"):
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    machine_code.check_frames([framed])
            self.assertIn(f"{framed.frame} bytes of stack: {framed.name}", printed.getvalue())

    def test_refuses_what_cuobjdump_reads_otherwise(self):
        listing = " Function k:\n  REG:40 STACK:0 SHARED:0 LOCAL:0\n"
        machine_code.check_resources({"k": kernel(registers=40)}, listing)
        for wrong in (kernel(registers=41), kernel(registers=40, frame=8), kernel("other", registers=40)):
            with self.assertRaisesRegex(SystemExit, "cuobjdump says"):
                machine_code.check_resources({wrong.name: wrong}, listing)

    def test_occupancy_is_what_registers_threads_and_shared_memory_leave_room_for(self):
        # 65536 registers, given out to warps in steps of 256; 228 KiB of shared memory, of which a block takes 1 more.
        kernels = [kernel(registers=32, threads=256), kernel(registers=40, threads=256),
                   kernel(registers=32, threads=256, shared=48 * 1024), kernel(registers=64)]
        machine_code.add_occupancy(kernels, OCCUPANCY)
        self.assertEqual([each.occupancy for each in kernels], [100, 75, 50, 50])

    def test_a_page_gets_its_tables_between_its_marks_and_needs_them(self):
        page = "before\n" + machine_code.BEGIN + "old\n" + machine_code.END + "after\n"
        new = machine_code.on_page(page, "new\n")
        self.assertEqual(new, "before\n" + machine_code.BEGIN + "\nnew\n" + machine_code.END + "after\n")
        self.assertEqual(machine_code.on_page(new, "new\n"), new)
        with self.assertRaisesRegex(SystemExit, "has no lines"):
            machine_code.on_page("before\n", "new\n")

    def test_a_row_has_the_numbers_of_both_architectures_where_they_differ(self):
        pair = [machine_code.Kernel(80, "x.cu", "k", registers=40, accesses=4, wide=1, occupancy=75),
                machine_code.Kernel(90, "x.cu", "k", registers=42, accesses=4, wide=1, occupancy=75)]
        self.assertEqual(machine_code.table(pair, "source")[-1], "| x.cu | 1 | 40 / 42 | 0 | 25 % | 0 | 75 % |")


if __name__ == "__main__":
    unittest.main()
