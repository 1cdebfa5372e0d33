"""What a solver makes of MPS and LP files: its objective and variables, with a gap of 0 where it can be set.

`programs.py SOLVER QUESTION ANSWER`: two JSON files, of paths and of what the solver says of each.
"""

import json
import subprocess
import sys
from pathlib import Path


def highs(path):
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("mip_abs_gap", 0.0)
    assert model.readModel(path) != highspy.HighsStatus.kError, "not read"
    model.run()
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal, model.getModelStatus()
    names = [model.getColName(i)[1] for i in range(model.getNumCol())]
    return model.getInfo().objective_function_value, dict(zip(names, model.getSolution().col_value, strict=True))


def scip(path):
    from pyscipopt import Model

    model = Model()
    model.hideOutput()
    model.readProblem(path)
    model.setParam("limits/gap", 0.0)
    model.optimize()
    assert model.getStatus() == "optimal", model.getStatus()
    return model.getObjVal(), {one.name: model.getVal(one) for one in model.getVars()}


def cbc(path):
    import pulp

    program = pulp.PULP_CBC_CMD().path
    found = Path(path).with_suffix(".solution")
    words = [program, path, "ratioGap", "0", "allowableGap", "0", "solve", "printingOptions", "all"]
    subprocess.run([*words, "solution", str(found)], check=True, capture_output=True)
    status, *rows = found.read_text().splitlines()
    assert status.startswith("Optimal"), status
    values = {row.split()[-3]: float(row.split()[-2]) for row in rows[rows_before_columns(rows) :]}
    return float(status.split()[-1]), values


def rows_before_columns(rows):
    """Constraints come first in a solution file, numbered from 0, and then columns, from 0 again."""
    return max(i for i, row in enumerate(rows) if row.split()[0] == "0" or row.split()[:2] == ["**", "0"])


def glpk(path):
    import swiglpk as g

    g.glp_term_out(g.GLP_OFF)
    problem = g.glp_create_prob()
    read = (
        g.glp_read_mps(problem, g.GLP_MPS_FILE, None, path)
        if path.endswith("mps")
        else g.glp_read_lp(problem, None, path)
    )
    assert read == 0, "not read"
    settings = g.glp_iocp()
    g.glp_init_iocp(settings)
    settings.presolve, settings.mip_gap = g.GLP_ON, 0.0
    assert g.glp_intopt(problem, settings) == 0, "not solved"
    assert g.glp_mip_status(problem) == g.GLP_OPT, g.glp_mip_status(problem)
    columns = range(1, g.glp_get_num_cols(problem) + 1)
    return g.glp_mip_obj_val(problem), {g.glp_get_col_name(problem, j): g.glp_mip_col_val(problem, j) for j in columns}


def ortools(path, solver="scip"):
    from ortools.linear_solver.python import model_builder

    model = model_builder.Model()
    read = model.import_from_mps_file if path.endswith("mps") else model.import_from_lp_file
    assert read(path), "not read"
    solver = model_builder.Solver(solver)
    if solver == "scip":
        solver.set_solver_specific_parameters("limits/gap = 0")
    status = solver.solve(model)
    assert status == model_builder.SolveStatus.OPTIMAL, status
    return solver.objective_value, {one.name: solver.value(one) for one in model.get_variables()}


def cp_sat(path):
    return ortools(path, "sat")


def gurobi(path):
    import gurobipy

    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(path, env) as model:
        model.Params.MIPGap = model.Params.MIPGapAbs = 0.0
        model.optimize()
        assert model.Status == gurobipy.GRB.OPTIMAL, model.Status
        return model.ObjVal, {one.VarName: one.X for one in model.getVars()}


def copt(path):
    import coptpy

    config = coptpy.EnvrConfig()
    config.set("nobanner", "1")
    model = coptpy.Envr(config).createModel()
    model.setParam("Logging", 0)
    model.read(path)
    model.setParam("RelGap", 0.0)
    model.setParam("AbsGap", 0.0)
    model.solve()
    assert model.status == coptpy.COPT.OPTIMAL, model.status
    return model.objval, {one.name: one.x for one in model.getVars()}


def said(solve, path):
    try:
        objective, values = solve(path)
    except Exception as error:
        return {"complaint": f"{type(error).__name__}: {error}"}
    return {"objective": objective, "values": values}


name, question, answer = sys.argv[1:]
paths = json.loads(Path(question).read_text("utf-8"))
Path(answer).write_text(json.dumps([said(globals()[name], path) for path in paths]), "utf-8")
