"""Two bicycles as bills of materials, for `examples.bill_of_materials`: what is fitted into what, and what is bought.

Invented. ``days`` is how long it takes to fit a part, or to have it delivered; the motor comes later.
"""

STRUCTURE = """\
assembly,part,quantity,days
City bicycle,Frame,1,1
City bicycle,Wheel,2,1
City bicycle,Drivetrain,1,1
City bicycle,Brake,2,1
City bicycle,Lights,1,1
Cargo bicycle,Frame,1,2
Cargo bicycle,Wheel,2,1
Cargo bicycle,Drivetrain,1,1
Cargo bicycle,Brake,2,1
Cargo bicycle,Load bed,1,2
Frame,Steel tube,8,3
Frame,Fork,1,1
Wheel,Rim,1,1
Wheel,Spoke,32,1
Wheel,Hub,1,1
Wheel,Tyre,1,1
Hub,Ball bearing,2,1
Drivetrain,Chain,1,1
Drivetrain,Crank,1,1
Crank,Ball bearing,2,1
Brake,Brake pad,2,1
Load bed,Steel tube,6,2
Load bed,Plywood,2,1
"""
BOUGHT = """\
part,price,days
Steel tube,6.50,12
Fork,38.00,20
Rim,19.00,15
Spoke,0.25,10
Tyre,21.00,8
Ball bearing,1.80,25
Chain,17.00,7
Brake pad,2.40,5
Lights,29.00,9
Plywood,14.00,3
"""
MOTOR_STRUCTURE = """\
assembly,part,quantity,days
Cargo bicycle,Drive unit,1,2
Drive unit,Motor,1,1
Drive unit,Battery,1,1
Battery,Cell,40,2
Motor,Ball bearing,3,1
"""
MOTOR_BOUGHT = """\
part,price,days
Cell,4.20,60
Motor,310.00,35
"""
